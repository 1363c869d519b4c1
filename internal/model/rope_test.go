package model

import (
	"math"
	"testing"
)

// TestRopeFrequencies compares with numbers from the formulas of Hugging Face transformers (modeling_rope_utils.py:
// _compute_yarn_parameters, _compute_linear_scaling_rope_parameters, _compute_longrope_parameters), run in Python.
func TestRopeFrequencies(t *testing.T) {
	for _, c := range []struct {
		name      string
		spec      ropeSpec
		divisors  []float32
		want      map[int]float64
		magnitude float64
	}{
		{
			name:      "yarn, 16 components, a ramp from the first pair on",
			spec:      ropeSpec{dims: 16, base: 1e6, scaling: ropeYarn, factor: 4, original: 64, attn: 1, betaFast: 32, betaSlow: 1},
			want:      map[int]float64{0: 1, 1: 0.11114246312743267, 2: 0.007905694150420948, 3: 0.0014058533129758727, 7: 1.4058533129758728e-06},
			magnitude: 1.138629436111989,
		},
		{
			name: "yarn as in Qwen2.5 for 131,072 tokens",
			spec: ropeSpec{dims: 128, base: 1e6, scaling: ropeYarn, factor: 4, original: 32768, attn: 1, betaFast: 32, betaSlow: 1},
			want: map[int]float64{
				0: 1, 10: 0.1154781984689458, 23: 0.006978305848598663, 24: 0.005375321490790102, 30: 0.0010643609812470017,
				40: 4.445698525097307e-05, 63: 3.102344401879299e-07,
			},
			magnitude: 1.138629436111989,
		},
		{
			name:      "linear",
			spec:      ropeSpec{dims: 16, base: 10000, scaling: ropeLinear, factor: 4, attn: 1},
			want:      map[int]float64{0: 0.25, 1: 0.07905694150420949, 7: 7.905694150420948e-05},
			magnitude: 1,
		},
		{
			name:      "long rope: a divisor for each pair, sine and cosine times the attention factor",
			spec:      ropeSpec{dims: 8, base: 10000, scaling: ropeLong, attn: 1.1902380714238083},
			divisors:  []float32{1, 1.25, 1.5, 3},
			want:      map[int]float64{0: 1, 1: 0.08, 2: 0.006666666666666667, 3: 0.0003333333333333333},
			magnitude: 1.1902380714238083,
		},
	} {
		got := c.spec.build(c.divisors)
		for i, want := range c.want {
			if math.Abs(got.radians[i]-want) > 1e-14*want {
				t.Errorf("%s: frequency %d = %v, want %v", c.name, i, got.radians[i], want)
			}
		}
		if math.Abs(got.magnitude-c.magnitude) > 1e-15 {
			t.Errorf("%s: magnitude %v, want %v", c.name, got.magnitude, c.magnitude)
		}
	}
}
