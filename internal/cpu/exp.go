package cpu

import "math"

// Constants of exp32 (docs/arithmetic.md §3): argument limits, ln 2 in two parts, and the polynomial of Cephes' expf.
const (
	expMin    float32 = -87 // below, the result is 0: 2^n stays a normal number
	expMax    float32 = 88  // above, the argument is taken for 88: the result stays finite
	log2E     float32 = 1.44269504088896341
	ln2High   float32 = 0.693359375
	ln2Low    float32 = -2.12194440e-4
	expC6     float32 = 1.9875691500e-4
	expC5     float32 = 1.3981999507e-3
	expC4     float32 = 8.3334519073e-3
	expC3     float32 = 4.1665795894e-2
	expC2     float32 = 1.6666665459e-1
	expC1     float32 = 5.0000001201e-1
	geluCubic float32 = 0.044715 * 1.5957691216057308 // 2·sqrt(2/π) times the cubic coefficient of tanh-GELU
	geluSlope float32 = 1.5957691216057308            // 2·sqrt(2/π)
)

// exp32 is e^x: x = n·ln 2 + r with n the nearest integer (ties to even), a polynomial in r, and n added to the
// exponent. Its error is below 2 units in the last place.
func exp32(x float32) float32 {
	if x < expMin {
		return 0
	}
	if x > expMax {
		x = expMax
	}
	if x != x {
		return x
	}
	n := float32(math.RoundToEven(float64(mul32(x, log2E))))
	r := fma32(-n, ln2High, x)
	r = fma32(-n, ln2Low, r)
	p := fma32(expC6, r, expC5)
	p = fma32(p, r, expC4)
	p = fma32(p, r, expC3)
	p = fma32(p, r, expC2)
	p = fma32(p, r, expC1)
	p = fma32(p, r, 1)
	p = fma32(p, r, 1)
	return math.Float32frombits(math.Float32bits(p) + uint32(int32(n))<<23)
}

// silu is x·sigmoid(x).
func silu(x float32) float32 { return x / add32(1, exp32(-x)) }

// gelu is the tanh form of GELU. 0.5·x·(1 + tanh u) = x / (1 + e^(-2u)), so it needs exp32 only.
func gelu(x float32) float32 {
	twoU := mul32(x, fma32(mul32(x, x), geluCubic, geluSlope))
	return x / add32(1, exp32(-twoU))
}

// softcap is limit·tanh(x/limit), with tanh y = 1 - 2/(1 + e^(2y)).
func softcap(x, limit float32) float32 {
	y := x / limit
	t := sub32(1, 2/add32(1, exp32(add32(y, y))))
	return mul32(limit, t)
}
