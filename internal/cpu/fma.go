package cpu

import "math"

// fma32 returns a·b + c rounded once to float32: what VFMADD computes (docs/arithmetic.md §1).
//
// The product of two float32 is exact in float64 (48 bits of 53). Adding c rounds once to 53 bits and the conversion
// rounds again to 24, which errs only when the first rounding lands on a tie of the second. Rounding the sum to odd
// instead keeps it off every tie it is not really on (Boldo and Melquiond, "Emulation of a FMA and correctly rounded
// sums: proved algorithms using rounding to odd", 2008).
func fma32(a, b, c float32) float32 {
	product := float64(a) * float64(b)
	sum := product + float64(c)
	bits := math.Float64bits(sum)
	const tie, below = 1 << 28, 1<<29 - 1 // the 29 bits that float32 has not
	if bits&below != tie && bits>>52&0x7ff >= 1023-126 {
		return float32(sum) // not on a tie, and a normal float32: the second rounding is right
	}
	return float32(roundToOdd(sum, product, float64(c)))
}

// roundToOdd returns a + b rounded to odd, where sum is a + b rounded to nearest.
func roundToOdd(sum, a, b float64) float64 {
	part := sum - a
	rest := (a - (sum - part)) + (b - part) // exactly what sum lost (Knuth's TwoSum)
	bits := math.Float64bits(sum)
	if bits&1 == 1 || !(rest < 0 || rest > 0) {
		return sum
	}
	if (rest > 0) == (sum > 0) {
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}

// The explicit conversions of mul32, add32 and sub32 forbid the compiler to fuse them into a multiply-add, as it
// does on arm64 and for GOAMD64=v3.
func mul32(a, b float32) float32 { return float32(a * b) }
func add32(a, b float32) float32 { return float32(a + b) }
func sub32(a, b float32) float32 { return float32(a - b) }

// lanes is the number of partial results a reduction keeps, and of outputs in a panel.
const lanes = 16

// sumTree adds 16 partial sums in the order of docs/arithmetic.md §2: lane i with i+8, then i+4, i+2, i+1.
func sumTree(v *[lanes]float32) float32 {
	for width := lanes / 2; width > 0; width /= 2 {
		for i := range width {
			v[i] = add32(v[i], v[i+width])
		}
	}
	return v[0]
}

func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) } // correctly rounded: 53 ≥ 2·24 + 2
