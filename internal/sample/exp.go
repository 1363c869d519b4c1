package sample

import "math"

// math.Exp and math.Log will not do: on amd64 math.Exp is assembly that uses FMA where the processor has it, so its last
// bit depends on the machine. Here every product that is added to something is rounded by an explicit conversion, which
// forbids the compiler to fuse the two.

const (
	// ln2 in two parts; the first has so few digits that its product with an integer below 2^20 is exact (FreeBSD e_exp.c).
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// exp returns e^x for x ≤ 0, to about one unit in the last place; below -708, where results become subnormal, it returns 0.
//
// x = n·ln2/128 + r with |r| ≤ ln2/256, so e^x = 2^(n/128) · e^r: a table and a polynomial of degree 5, whose first
// omitted term r^6/720 is below 2^-60. No division, and no step waits for a step of the previous element.
func exp(x float64) float64 {
	if x < -708 {
		return 0
	}
	n := int(float64(x*(128*math.Log2E)) - 0.5) // to the nearest, since x ≤ 0
	r := x - float64(float64(n)*(ln2Hi/128)) - float64(float64(n)*(ln2Lo/128))
	p := 1./24 + float64(r*(1./120))
	p = 1./6 + float64(r*p)
	p = 1./2 + float64(r*p)
	p = r + float64(float64(r*r)*p)
	scale := math.Float64frombits(math.Float64bits(exp2[n&127]) + uint64(n>>7)<<52)
	return scale + float64(scale*p)
}

// log returns the natural logarithm of a normal x > 0; the method and its constants are FreeBSD's (e_log.c).
func log(x float64) float64 {
	const (
		l1 = 6.666666666666735130e-01
		l2 = 3.999999999940941908e-01
		l3 = 2.857142874366239149e-01
		l4 = 2.222219843214978396e-01
		l5 = 1.818357216161805012e-01
		l6 = 1.531383769920937332e-01
		l7 = 1.479819860511658591e-01
	)
	f1, ki := math.Frexp(x)
	if f1 < math.Sqrt2/2 {
		f1 *= 2
		ki--
	}
	f, k := f1-1, float64(ki)
	s := f / (2 + f)
	s2 := s * s
	s4 := s2 * s2
	a := l5 + float64(s4*l7)
	a = l3 + float64(s4*a)
	a = l1 + float64(s4*a)
	b := l4 + float64(s4*l6)
	b = l2 + float64(s4*b)
	r := float64(s2*a) + float64(s4*b)
	h := float64(0.5 * f * f)
	return float64(k*ln2Hi) - ((h - (float64(s*(h+r)) + float64(k*ln2Lo))) - f)
}
