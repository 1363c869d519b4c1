package sample

import (
	"fmt"
	"math"
)

// greedyBelow is the temperature under which sampling is greedy, vLLM's _SAMPLING_EPS.
const greedyBelow = 1e-5

// Params says how the tokens of one request are chosen. Start from Default: the zero value is not valid. A Params is
// read-only once a Sampler was made of it.
type Params struct {
	// Temperature divides the logits, in [0, 2]. 0 is greedy.
	Temperature float64
	// TopK keeps the k largest logits; 0 keeps all.
	TopK int
	// TopP keeps the smallest set of most probable tokens whose probability reaches it, in (0, 1]; 1 keeps all.
	TopP float64
	// MinP drops tokens less probable than MinP times the most probable one, in [0, 1]; 0 keeps all.
	MinP float64

	// RepetitionPenalty divides positive and multiplies negative logits of tokens seen in prompt or output, > 0; 1 is off.
	RepetitionPenalty float64
	// PresencePenalty is subtracted from the logits of tokens in the output, in [-2, 2]; 0 is off.
	PresencePenalty float64
	// FrequencyPenalty is subtracted once per occurrence in the output, in [-2, 2]; 0 is off.
	FrequencyPenalty float64

	// LogitBias is added to the logits of its ids, limited to ±100 as OpenAI documents and vLLM does.
	LogitBias map[int32]float32
	// AllowedTokenIDs, when not empty, are the only ids that may be chosen.
	AllowedTokenIDs []int32
	// BadWords are token sequences that must not appear in the output: the last id of one is masked while the output
	// ends with the others.
	BadWords [][]int32

	// MinTokens is the number of output tokens before which none of StopIDs may be chosen.
	MinTokens int
	// StopIDs are the ids that would end the request: the model's end-of-generation ids unless they are ignored, and the
	// request's stop_token_ids. They matter here only through MinTokens.
	StopIDs []int32

	// Seed keys the random numbers. A request that names none should be given a random one.
	Seed uint64

	// Logprobs asks for the log probability and rank of each chosen token and of that many most probable ones;
	// -1 asks for none.
	Logprobs int
	// PromptLogprobs asks the same for the tokens of the prompt.
	PromptLogprobs int
}

// Default returns parameters that change nothing: temperature 1, no truncation, no penalty, no log probabilities.
func Default() Params {
	return Params{Temperature: 1, TopP: 1, RepetitionPenalty: 1, Logprobs: -1, PromptLogprobs: -1}
}

// ParamError is the error of Validate: one parameter under the name it has in the OpenAI API, and what is wrong with it.
type ParamError struct {
	Param  string // "top_p"
	Reason string // "must be in (0, 1], got 0"
}

func (e *ParamError) Error() string { return e.Param + " " + e.Reason }

// Validate reports the first parameter outside its range as a *ParamError. vocab is the number of logits in a row.
func (p *Params) Validate(vocab int) error {
	if err := p.validateNumbers(); err != nil {
		return err
	}
	return p.validateIDs(vocab)
}

func (p *Params) validateNumbers() error {
	for _, c := range []struct {
		param string
		value float64
		ok    bool
		want  string
	}{
		{"temperature", p.Temperature, p.Temperature >= 0 && p.Temperature <= 2, "in [0, 2]"},
		{"top_k", float64(p.TopK), p.TopK >= 0, "0 (off) or at least 1"},
		{"top_p", p.TopP, p.TopP > 0 && p.TopP <= 1, "in (0, 1]"},
		{"min_p", p.MinP, p.MinP >= 0 && p.MinP <= 1, "in [0, 1]"},
		{"repetition_penalty", p.RepetitionPenalty, p.RepetitionPenalty > 0 && !math.IsInf(p.RepetitionPenalty, 1), "greater than zero"},
		{"presence_penalty", p.PresencePenalty, p.PresencePenalty >= -2 && p.PresencePenalty <= 2, "in [-2, 2]"},
		{"frequency_penalty", p.FrequencyPenalty, p.FrequencyPenalty >= -2 && p.FrequencyPenalty <= 2, "in [-2, 2]"},
		{"min_tokens", float64(p.MinTokens), p.MinTokens >= 0, "at least 0"},
		{"logprobs", float64(p.Logprobs), p.Logprobs >= -1, "at least 0"},
		{"prompt_logprobs", float64(p.PromptLogprobs), p.PromptLogprobs >= -1, "at least 0"},
	} {
		if !c.ok { // NaN is never ok: every comparison with it is false
			return &ParamError{c.param, fmt.Sprintf("must be %s, got %v", c.want, c.value)}
		}
	}
	return nil
}

func (p *Params) validateIDs(vocab int) error {
	lowest := int64(math.MaxInt64) // report the smallest bad id, not the first in map order
	for id, bias := range p.LogitBias {
		if bad := id < 0 || int(id) >= vocab || bias-bias != 0; bad {
			lowest = min(lowest, int64(id))
		}
	}
	if lowest != math.MaxInt64 {
		id := int32(lowest)
		if bias := p.LogitBias[id]; bias-bias != 0 {
			return &ParamError{"logit_bias", fmt.Sprintf("of token %d must be a finite number, got %v", id, bias)}
		}
		return outside("logit_bias", id, vocab)
	}
	for _, id := range p.AllowedTokenIDs {
		if id < 0 || int(id) >= vocab {
			return outside("allowed_token_ids", id, vocab)
		}
	}
	for _, id := range p.StopIDs {
		if id < 0 || int(id) >= vocab {
			return outside("stop_token_ids", id, vocab)
		}
	}
	for _, word := range p.BadWords {
		if len(word) == 0 {
			return &ParamError{"bad_words", "must not contain an empty word"}
		}
		for _, id := range word {
			if id < 0 || int(id) >= vocab {
				return outside("bad_words", id, vocab)
			}
		}
	}
	return nil
}

func outside(param string, id int32, vocab int) error {
	return &ParamError{param, fmt.Sprintf("names token %d outside the vocabulary of %d", id, vocab)}
}

func (p *Params) greedy() bool { return p.Temperature < greedyBelow }

func (p *Params) penalises() bool {
	return p.RepetitionPenalty != 1 || p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}
