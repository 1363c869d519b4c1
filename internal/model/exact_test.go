package model

import (
	"math"
	"testing"
)

// TestExactFunctionsMatchMath holds the written-out functions to package math within a few units in the last place.
func TestExactFunctionsMatchMath(t *testing.T) {
	near := func(name string, x, got, want, tol float64) {
		t.Helper()
		if d := math.Abs(got - want); !(d <= tol) {
			t.Errorf("%s(%v) = %v; want %v, off by %g", name, x, got, want, d)
		}
	}
	for _, x := range []float64{1e-6, 0.1, 0.70710678, 1, 2, math.E, 500, 1e4, 1e6, 5e5, 1e7} {
		near("log", x, logExact(x), math.Log(x), 4e-16*math.Abs(math.Log(x))+1e-17)
	}
	for x := -20.0; x < 20; x += 0.37 {
		near("exp", x, expExact(x), math.Exp(x), 6e-16*math.Exp(x))
	}
}
