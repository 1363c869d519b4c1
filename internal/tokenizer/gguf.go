package tokenizer

import (
	"errors"
	"fmt"

	"github.com/quire-ai/quire/gguf"
)

// keyPrefix is what all tokenizer keys of a GGUF file begin with.
const keyPrefix = "tokenizer.ggml."

// FromGGUF makes the tokenizer of a model file.
func FromGGUF(m *gguf.Metadata) (*Tokenizer, error) {
	r := keyReader{m: m}
	cfg := Config{
		Name:    r.text("general.name"),
		Model:   r.text(keyPrefix + "model"),
		Pre:     r.text(keyPrefix + "pre"),
		Tokens:  optional(&r, keyPrefix+"tokens", m.Strings),
		Merges:  optional(&r, keyPrefix+"merges", m.Strings),
		Scores:  r.scores(),
		Types:   r.types(),
		Special: r.specialIDs(),

		AddBOS:         r.flag(keyPrefix + "add_bos_token"),
		AddEOS:         r.flag(keyPrefix + "add_eos_token"),
		AddSpacePrefix: r.flag(keyPrefix + "add_space_prefix"),
	}
	if r.err != nil {
		return nil, r.err
	}
	t, err := New(cfg)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

// keyReader reads keys that may be absent and remembers the first fault.
type keyReader struct {
	m   *gguf.Metadata
	err error
}

// optional returns the value of a key, or zero if the key is absent or there was a fault before.
func optional[T any](r *keyReader, key string, get func(string) (T, error)) T {
	var zero T
	if r.err != nil {
		return zero
	}
	value, err := get(key)
	if errors.Is(err, gguf.ErrMissing) {
		return zero
	}
	if err != nil {
		r.err = err
		return zero
	}
	return value
}

func (r *keyReader) text(key string) string { return optional(r, key, r.m.String) }

func (r *keyReader) flag(key string) *bool {
	if !r.m.Has(key) {
		return nil
	}
	return new(optional(r, key, r.m.Bool))
}

// scores are floating-point numbers, or integers in a few old files.
func (r *keyReader) scores() []float64 {
	const key = keyPrefix + "scores"
	v, ok := r.m.Lookup(key)
	if !ok || v.ElementKind() == gguf.Float32 || v.ElementKind() == gguf.Float64 {
		return optional(r, key, r.m.Floats)
	}
	var scores []float64
	for _, n := range optional(r, key, r.m.Ints) {
		scores = append(scores, float64(n))
	}
	return scores
}

func (r *keyReader) types() []TokenType {
	var types []TokenType
	for _, n := range optional(r, keyPrefix+"token_type", r.m.Ints) {
		types = append(types, TokenType(n))
	}
	return types
}

// specialIDs reads the named tokens. Some have two names: the older one is asked for second. Where model llama names
// none, BOS, EOS and the unknown token are 1, 2 and 0, as in Llama 2.
func (r *keyReader) specialIDs() SpecialIDs {
	ids := NoSpecialIDs()
	if r.text(keyPrefix+"model") == "llama" {
		ids.BOS, ids.EOS, ids.Unknown = 1, 2, 0
	}
	for _, named := range []struct {
		id   *int32
		keys []string
	}{
		{&ids.BOS, []string{"bos_token_id"}},
		{&ids.EOS, []string{"eos_token_id"}},
		{&ids.EOT, []string{"eot_token_id"}},
		{&ids.EOM, []string{"eom_token_id"}},
		{&ids.Unknown, []string{"unknown_token_id"}},
		{&ids.Pad, []string{"padding_token_id"}},
		{&ids.FIMPrefix, []string{"fim_pre_token_id", "prefix_token_id"}},
		{&ids.FIMSuffix, []string{"fim_suf_token_id", "suffix_token_id"}},
		{&ids.FIMMiddle, []string{"fim_mid_token_id", "middle_token_id"}},
		{&ids.FIMPad, []string{"fim_pad_token_id"}},
		{&ids.FIMRepo, []string{"fim_rep_token_id"}},
		{&ids.FIMSeparator, []string{"fim_sep_token_id"}},
	} {
		for _, key := range named.keys {
			if !r.m.Has(keyPrefix + key) {
				continue
			}
			// An id beyond int32 is outside any vocabulary, like one that is merely too large: New drops both.
			*named.id = int32(min(optional(r, keyPrefix+key, r.m.Int), 1<<31-1))
			break
		}
	}
	return ids
}
