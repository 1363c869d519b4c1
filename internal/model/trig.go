package model

import "math"

// The rope tables are part of the arithmetic contract: every machine must turn a position into the same bits. Package
// math does not promise that (it has assembly on some machines, and compilers may fuse x*y + z), so the four functions
// needed are written out here. Each product is rounded by an explicit conversion before it is added, which the Go
// specification says forbids fusing. Their errors stay below 4 units in the last place of a float64, far under the
// float32 the tables are rounded to.

// logExact returns the natural logarithm of a positive finite x.
func logExact(x float64) float64 {
	frac, exp := math.Frexp(x)
	if frac < math.Sqrt2/2 {
		frac *= 2
		exp--
	}
	// ln frac = 2 atanh(t) = 2(t + t³/3 + t⁵/5 …) with |t| ≤ 0.1716: t² < 0.0295, so 13 terms reach 2⁻⁶⁰.
	t := (frac - 1) / (frac + 1)
	t2 := t * t
	sum := 0.0
	for k := 25; k >= 1; k -= 2 {
		sum = float64(sum*t2) + 1/float64(k)
	}
	return float64(float64(exp)*math.Ln2) + float64(2*float64(t*sum))
}

// expExact returns e to the power x for |x| below 700.
func expExact(x float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01 // upper 33 bits of ln 2, so that n·ln2Hi is exact (fdlibm e_exp.c)
		ln2Lo = 1.90821492927058770002e-10
	)
	n := math.Floor(float64(x/math.Ln2) + 0.5)
	r := float64(x-float64(n*ln2Hi)) - float64(n*ln2Lo)
	// Taylor for |r| ≤ 0.3466: 15 terms reach 2⁻⁶¹.
	sum := 1.0
	for k := 15; k >= 1; k-- {
		sum = 1 + float64(sum*r)/float64(k)
	}
	return math.Ldexp(sum, int(n))
}

// sincosExact returns sine and cosine of an angle of 0 to 2³⁰ radians.
func sincosExact(x float64) (sin, cos float64) {
	const ( // π/2 in three pieces of 33 bits and the rest (fdlibm e_rem_pio2.c)
		pio2a = 1.57079632673412561417e+00
		pio2b = 6.07710050630396597660e-11
		pio2c = 2.02226624879595063154e-21
	)
	n := math.Floor(float64(x*(2/math.Pi)) + 0.5)
	r := float64(x - float64(n*pio2a))
	r -= float64(n * pio2b)
	r -= float64(n * pio2c)
	r2 := r * r
	// Taylor for |r| ≤ 0.7855: the first terms left out are below 2⁻⁵⁶.
	s := 0.0
	for k := 17; k >= 3; k -= 2 {
		s = float64(r2/float64(k*(k-1))) * (1 - s)
	}
	c := 0.0
	for k := 18; k >= 2; k -= 2 {
		c = float64(r2/float64(k*(k-1))) * (1 - c)
	}
	s, c = float64(r*(1-s)), 1-c
	switch int64(n) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	default:
		return -c, s
	}
}
