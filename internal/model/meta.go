package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quire-ai/quire/gguf"
)

// meta reads the keys of one architecture and keeps the first fault, so that a run of reads needs one check.
type meta struct {
	f      *gguf.File
	prefix string // "llama." once the architecture is known
	err    error
}

func (m *meta) has(key string) bool { return m.f.Metadata.Has(m.prefix + key) }

// fail notes a fault; nil is none.
func (m *meta) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// refuse fails for keys that change what a model computes in ways this package does not know, unless their value says
// that they do not.
func (m *meta) refuse() {
	for _, k := range []struct {
		key     string
		neutral []float64 // values that change nothing
	}{
		{"expert_count", []float64{0}},
		{"attention.clamp_kqv", []float64{0}},
		{"attention.max_alibi_bias", []float64{0}},
		{"attention.temperature_scale", []float64{0}},
		{"logit_scale", []float64{0, 1}},
		{"residual_scale", []float64{0, 1}},
		{"embedding_scale", []float64{0, 1}},
		{"rope.scaling.yarn_ext_factor", []float64{-1, 1}},
		{"rope.scaling.yarn_attn_factor", []float64{1}},
		{"rope.scaling.yarn_log_multiplier", []float64{0}},
	} {
		v, ok := m.f.Metadata.Lookup(m.prefix + k.key)
		if !ok {
			continue
		}
		number, isFloat := v.Float()
		if i, isInt := v.Int(); isInt {
			number = float64(i)
		} else if !isFloat {
			m.fail(fmt.Errorf("%s%s is a %v, want a number", m.prefix, k.key, v.Kind()))
		}
		if !slices.Contains(k.neutral, number) {
			m.fail(fmt.Errorf("%s%s is %g, which is not supported", m.prefix, k.key, number))
		}
	}
	if causal, err := m.f.Metadata.BoolOr(m.prefix+"attention.causal", true); err != nil || !causal {
		m.fail(cmp.Or(err, fmt.Errorf("%sattention.causal is false: an embedding model cannot generate", m.prefix)))
	}
}

// size reads an integer of 0 to limit. Files differ in the kinds they use; gguf converts.
func (m *meta) size(key string, limit uint64) int {
	v, err := m.f.Metadata.Uint(m.prefix + key)
	if err == nil && v > limit {
		err = fmt.Errorf("%s%s is %d, limit %d", m.prefix, key, v, limit)
	}
	if err != nil {
		m.fail(err)
		return 0
	}
	return int(v)
}

// sizeOr is size with a value for a missing key.
func (m *meta) sizeOr(key string, limit uint64, absent int) int {
	if !m.has(key) {
		return absent
	}
	return m.size(key, limit)
}

// sameSize reads a size that some files give as one number and others as one number a layer. Layers that differ are
// refused.
func (m *meta) sameSize(key string, layers int, limit uint64) int {
	v, ok := m.f.Metadata.Lookup(m.prefix + key)
	if !ok || v.Kind() != gguf.Array {
		return m.size(key, limit)
	}
	list, err := m.f.Metadata.Uints(m.prefix + key)
	if err == nil && len(list) < max(layers, 1) {
		err = fmt.Errorf("%s%s has %d values for %d layers", m.prefix, key, len(list), layers)
	}
	if err != nil {
		m.fail(err)
		return 0
	}
	for i, v := range list[:layers] {
		if v != list[0] || v > limit {
			m.fail(fmt.Errorf("%s%s is %d in layer %d and %d in layer 0: layers of different shape are not supported (limit %d)",
				m.prefix, key, v, i, list[0], limit))
			return 0
		}
	}
	return int(list[0])
}

func (m *meta) float(key string) float64 {
	v, err := m.f.Metadata.Float(m.prefix + key)
	if err != nil {
		m.fail(err)
	}
	return v
}

func (m *meta) floatOr(key string, absent float64) float64 {
	v, err := m.f.Metadata.FloatOr(m.prefix+key, absent)
	if err != nil {
		m.fail(err)
	}
	return v
}

func (m *meta) stringOr(key, absent string) string {
	v, err := m.f.Metadata.StringOr(m.prefix+key, absent)
	if err != nil {
		m.fail(err)
	}
	return v
}
