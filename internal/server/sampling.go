package server

import (
	"github.com/quire-ai/quire/internal/openai"
	"github.com/quire-ai/quire/internal/sample"
)

// sampling says how the tokens of a request are chosen: what it asks for, else what the model's file recommends.
func (s *Server) sampling(c *openai.Common) sample.Params {
	p := s.model.Sampling
	set(&p.Temperature, c.Temperature)
	set(&p.TopP, c.TopP)
	set(&p.TopK, c.TopK)
	set(&p.MinP, c.MinP)
	set(&p.FrequencyPenalty, c.FrequencyPenalty)
	set(&p.PresencePenalty, c.PresencePenalty)
	set(&p.RepetitionPenalty, c.RepetitionPenalty)
	p.TopK = max(p.TopK, 0) // -1 is off too
	p.AllowedTokenIDs = c.AllowedTokenIDs
	if len(c.LogitBias) > 0 {
		p.LogitBias = make(map[int32]float32, len(c.LogitBias))
		for id, bias := range c.LogitBias {
			p.LogitBias[id] = float32(bias)
		}
	}
	for _, word := range c.BadWords {
		p.BadWords = append(p.BadWords, s.wordIDs(word)...)
	}
	p.Logprobs, p.PromptLogprobs = -1, -1
	if c.PromptLogprobs != nil {
		p.PromptLogprobs = s.alternatives(*c.PromptLogprobs)
	}
	return p
}

// alternatives turns -1, all, into the number that means.
func (s *Server) alternatives(n int) int {
	if n < 0 {
		return s.model.Engine.Vocab()
	}
	return n
}

// set replaces a default by what a request says.
func set[T any](p *T, v *T) {
	if v != nil {
		*p = *v
	}
}
