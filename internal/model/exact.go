package model

import "math"

// Rope frequencies are part of the arithmetic contract: every machine must turn a position by the same bits. Package
// math does not promise that (it has assembly on some machines, and compilers may fuse x*y + z), so the two functions
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
