package model

import (
	"fmt"
	"math"
)

// ropeScaling names the ways of stretching rope beyond the trained context. The words are those of
// <arch>.rope.scaling.type.
type ropeScaling string

const (
	ropeNone     ropeScaling = "none"
	ropeLinear   ropeScaling = "linear"   // positions divided by a factor
	ropeYarn     ropeScaling = "yarn"     // slow components divided, fast ones kept, a ramp between (arXiv 2309.00071)
	ropeLong     ropeScaling = "longrope" // one divisor for each component, for short or for long use (arXiv 2402.13753)
	yarnBetaFast             = 32         // YaRN §A.2: components turning more often than this over the context are kept
	yarnBetaSlow             = 1          // YaRN §A.2: components turning less often than this are divided
)

// ropeSpec is the rope of one kind of layer before its frequencies are worked out.
type ropeSpec struct {
	dims     int // leading components of a head that turn; even
	base     float64
	scaling  ropeScaling
	factor   float64 // of linear and yarn
	original int     // context before stretching, for yarn and longrope
	attn     float64 // rope.scaling.attn_factor: multiplies the turned components
	betaFast float64
	betaSlow float64
}

// frequencies is a layer's rope worked out: component pair i of a row at position p turns by p·radians[i] and is
// multiplied by magnitude.
type frequencies struct {
	radians   []float64 // [dims/2] a position
	magnitude float64
}

// readRope fills the rope of global and of windowed layers.
func (c *Config) readRope(m *meta) error {
	s := ropeSpec{
		dims:     m.sizeOr("rope.dimension_count", maxWidth, c.HeadDim),
		base:     m.floatOr("rope.freq_base", 10000), // RoFormer §3.4.3, llama.cpp's default
		scaling:  ropeScaling(m.stringOr("rope.scaling.type", string(ropeNone))),
		factor:   m.floatOr("rope.scaling.factor", m.floatOr("rope.scale_linear", 1)),
		original: m.sizeOr("rope.scaling.original_context_length", math.MaxInt32, c.Context),
		attn:     m.floatOr("rope.scaling.attn_factor", 1),
		betaFast: m.floatOr("rope.scaling.yarn_beta_fast", yarnBetaFast),
		betaSlow: m.floatOr("rope.scaling.yarn_beta_slow", yarnBetaSlow),
	}
	if m.has("rope.scale_linear") && s.scaling == ropeNone && s.factor != 1 {
		s.scaling = ropeLinear // files from before rope.scaling.type existed
	}
	if _, ok := m.f.Tensor("rope_factors_long.weight"); ok && s.scaling == ropeNone {
		s.scaling = ropeLong // Phi-3 files name no type: the tensors tell
	}
	c.global, c.local = s, s
	if m.err != nil {
		return m.err
	}
	if err := s.check(c.HeadDim); err != nil {
		return err
	}
	// Windowed layers of a model with two bases are never stretched: their window lies inside the trained context.
	if c.arch.localBase > 0 {
		c.local.base = m.floatOr("rope.freq_base_swa", c.arch.localBase)
		c.local.scaling, c.local.factor = ropeNone, 1
	}
	return c.local.check(c.HeadDim)
}

// check refuses rope this package does not know or that makes no sense.
func (s *ropeSpec) check(headDim int) error {
	switch s.scaling {
	case ropeNone, ropeLinear, ropeYarn, ropeLong:
	default:
		return fmt.Errorf("rope scaling type %q is not supported; supported are %q",
			s.scaling, []ropeScaling{ropeNone, ropeLinear, ropeYarn, ropeLong})
	}
	switch {
	case s.dims <= 0 || s.dims%2 != 0 || s.dims > headDim:
		return fmt.Errorf("rope.dimension_count %d must be even and at most the head size %d", s.dims, headDim)
	case !(s.base > 1) || math.IsInf(s.base, 0):
		return fmt.Errorf("rope base %g must be above 1", s.base)
	case !(s.factor > 0) || math.IsInf(s.factor, 0):
		return fmt.Errorf("rope.scaling.factor %g must be positive", s.factor)
	case !(s.attn > 0) || math.IsInf(s.attn, 0):
		return fmt.Errorf("rope.scaling.attn_factor %g must be positive", s.attn)
	case s.scaling == ropeYarn && s.original == 0:
		return fmt.Errorf("rope scaling yarn needs rope.scaling.original_context_length")
	case s.scaling == ropeYarn && !(s.betaFast > s.betaSlow && s.betaSlow > 0):
		return fmt.Errorf("yarn betas fast %g and slow %g must be positive and fall", s.betaFast, s.betaSlow)
	}
	return nil
}

// build works out the frequencies. divisors, when not nil, holds one divisor for each frequency: rope_freqs.weight of
// Llama 3, or the chosen one of Phi-3's two tensors.
func (s *ropeSpec) build(divisors []float32) frequencies {
	r := frequencies{radians: make([]float64, s.dims/2), magnitude: s.attn}
	lnBase := logExact(s.base)
	for i := range r.radians {
		r.radians[i] = expExact(-float64(2*i) / float64(s.dims) * lnBase)
		if divisors != nil {
			r.radians[i] /= float64(divisors[i])
		}
	}
	switch s.scaling {
	case ropeLinear:
		for i := range r.radians {
			r.radians[i] /= s.factor
		}
	case ropeYarn:
		s.stretchYarn(&r, lnBase)
	}
	return r
}

// stretchYarn divides the frequencies by the factor below the slow border, keeps them above the fast one, and mixes
// between, as YaRN §3.2–3.4 and llama.cpp's ggml_rope_yarn do.
func (s *ropeSpec) stretchYarn(r *frequencies, lnBase float64) {
	border := func(turns float64) float64 { // index of the component that turns so often over the original context
		return float64(s.dims) * logExact(float64(s.original)/(turns*2*math.Pi)) / (2 * lnBase)
	}
	low := max(0, math.Floor(border(s.betaFast)))
	high := min(float64(s.dims-1), math.Ceil(border(s.betaSlow)))
	span := max(0.001, high-low)
	for i := range r.radians {
		keep := 1 - min(1, max(0, (float64(i)-low)/span))
		stretched := r.radians[i] / s.factor
		r.radians[i] = float64(stretched*(1-keep)) + float64(r.radians[i]*keep)
	}
	if s.factor > 1 {
		r.magnitude *= 1 + float64(0.1*logExact(s.factor))
	}
}
