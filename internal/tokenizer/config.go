package tokenizer

// Config is what a model file says about its tokenizer, in plain values: FromGGUF fills it from tokenizer.ggml.*.
type Config struct {
	Name  string // general.name: some models' rules are known by it alone
	Model string // tokenizer.ggml.model
	Pre   string // tokenizer.ggml.pre

	Tokens []string    // tokenizer.ggml.tokens
	Types  []TokenType // tokenizer.ggml.token_type, nil if absent
	Scores []float64   // tokenizer.ggml.scores; needed for model llama
	Merges []string    // tokenizer.ggml.merges; needed for model gpt2

	Special SpecialIDs

	// What Options.AddSpecial adds, and whether a space goes before the text; nil where the file does not say.
	AddBOS, AddEOS, AddSpacePrefix *bool
}

// SpecialIDs are the tokens with a part to play, None where there is none.
type SpecialIDs struct {
	BOS, EOS, EOT, EOM, Unknown, Pad                               int32
	FIMPrefix, FIMSuffix, FIMMiddle, FIMPad, FIMRepo, FIMSeparator int32
}

// NoSpecialIDs returns ids that are all None.
func NoSpecialIDs() SpecialIDs {
	var s SpecialIDs
	for _, id := range s.all() {
		*id = None
	}
	return s
}

func (s *SpecialIDs) all() []*int32 {
	return []*int32{
		&s.BOS, &s.EOS, &s.EOT, &s.EOM, &s.Unknown, &s.Pad,
		&s.FIMPrefix, &s.FIMSuffix, &s.FIMMiddle, &s.FIMPad, &s.FIMRepo, &s.FIMSeparator,
	}
}

// within returns the ids with those outside a vocabulary of n tokens set to None, as llama.cpp does.
func (s SpecialIDs) within(n int) SpecialIDs {
	for _, id := range s.all() {
		if *id < 0 || int(*id) >= n {
			*id = None
		}
	}
	return s
}
