package sample

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/invariant"
)

// Token is a chosen token with, when asked for, its place in the model's raw distribution.
type Token struct {
	ID      int32
	Logprob float32        // natural logarithm of the probability before bias, penalties, temperature and truncation
	Rank    int            // 1 for the most probable; 0 when log probabilities were not asked for
	Top     []TokenLogprob // the most probable tokens, best first, as many as asked for
}

// TokenLogprob is one entry of Token.Top.
type TokenLogprob struct {
	ID      int32
	Logprob float32
}

// Sampler chooses the tokens of one request, in order. It remembers the tokens it chose, for penalties, bad words and
// the minimum length; it survives preemption of the request, which loses no output. One caller at a time.
type Sampler struct {
	params  *Params
	vocab   int
	prompt  int     // tokens
	outputs []int32 // chosen so far

	bias    []biased // sorted by id
	allowed []int32  // sorted, without repeats; nil allows all
	seen    counts

	work    cpu.Logits
	row     row    // in hand
	edits   []edit // of it
	compact []float32
	picker  picker
	items   []item // for Token.Top
}

type biased struct {
	id   int32
	bias float32
}

// edit remembers the raw logit of an id whose logit was changed.
type edit struct {
	id  int32
	raw float32
}

// masked is the logit of a token that must not be chosen: finite, like all others.
const masked = -math.MaxFloat32

// New returns the sampler of a request with the given prompt. The parameters must be valid for vocab. What it chooses
// does not depend on work, but for the time it takes.
func New(p *Params, vocab int, prompt []int32, work cpu.Logits) *Sampler {
	err := p.Validate(vocab)
	invariant.Check(err == nil, "sampling parameters were validated: %v", err)
	s := &Sampler{params: p, vocab: vocab, prompt: len(prompt), work: work}
	for _, id := range slices.Sorted(maps.Keys(p.LogitBias)) {
		s.bias = append(s.bias, biased{id, max(-100, min(100, p.LogitBias[id]))})
	}
	if len(p.AllowedTokenIDs) > 0 {
		s.allowed = slices.Compact(slices.Sorted(slices.Values(p.AllowedTokenIDs)))
	}
	if p.penalises() {
		s.seen.addPrompt(prompt)
	}
	return s
}

// Outputs returns how many tokens were chosen so far.
func (s *Sampler) Outputs() int { return len(s.outputs) }

// Sample chooses the token that stands at position, counted from the start of the prompt, out of its logits. Positions
// follow one another; one that was sampled before is sampled anew, and what came after it is forgotten. Logits are used
// as working memory and restored. A row with a NaN or an infinity is an error, and so is one of which every token is
// masked; the position is then still to be sampled.
func (s *Sampler) Sample(logits []float32, position int) (Token, error) {
	if outputs := position - s.prompt; len(logits) != s.vocab || outputs < 0 || outputs > len(s.outputs) {
		invariant.Broken("sample position %d of %d logits after a prompt of %d and %d outputs; want %d logits",
			position, len(logits), s.prompt, len(s.outputs), s.vocab)
	}
	s.rewind(position - s.prompt)
	best, err := s.row.reset(logits, s.work)
	if err != nil {
		return Token{}, fmt.Errorf("sample position %d: %w", position, err)
	}
	raw := best
	s.editRow(logits)
	if len(s.edits) > 0 || s.allowed != nil {
		if best, err = s.row.reset(s.candidates(logits), s.work); err != nil {
			s.restore(logits)
			return Token{}, fmt.Errorf("sample position %d, edited: %w", position, err)
		}
	}
	chosen := best.index
	if best.value != masked && !s.params.greedy() {
		chosen = s.picker.pick(&s.row, s.work, best, s.params, Uniform(s.params.Seed, position))
	}
	s.restore(logits)
	if best.value == masked {
		return Token{}, fmt.Errorf("sample position %d: every token is masked", position)
	}
	if s.allowed != nil {
		chosen = s.allowed[chosen]
	}
	s.outputs = append(s.outputs, chosen)
	if s.params.penalises() {
		s.seen.addOutput(chosen)
	}
	if s.params.Logprobs < 0 {
		return Token{ID: chosen}, nil
	}
	return s.score(logits, raw, chosen, s.params.Logprobs), nil
}

// Score returns the token id with its log probability and rank in a row of logits, and the most probable tokens as
// PromptLogprobs asks: what the model thought of a token of the prompt.
func (s *Sampler) Score(logits []float32, id int32) (Token, error) {
	best, err := s.row.reset(logits, s.work)
	if err != nil {
		return Token{}, fmt.Errorf("score prompt token %d: %w", id, err)
	}
	return s.score(logits, best, id, s.params.PromptLogprobs), nil
}

// score fills in log probabilities from raw logits, as log softmax in float64 over the ids in order.
func (s *Sampler) score(logits []float32, best item, id int32, top int) Token {
	sum, rank := 0.0, 1
	own := logits[id]
	for i, value := range logits {
		sum += exp(float64(value) - float64(best.value))
		if value > own || value == own && int32(i) < id {
			rank++
		}
	}
	normaliser := log(sum)
	logprob := func(value float32) float32 { return float32(float64(value) - float64(best.value) - normaliser) }
	t := Token{ID: id, Logprob: logprob(own), Rank: rank}
	if top > 0 {
		s.items = topK(s.items[:0], &s.row, top)
		t.Top = make([]TokenLogprob, len(s.items))
		for i, it := range s.items {
			t.Top[i] = TokenLogprob{it.index, logprob(it.value)}
		}
	}
	return t
}

// rewind forgets all outputs but the first n.
func (s *Sampler) rewind(n int) {
	if s.params.penalises() {
		for _, id := range s.outputs[n:] {
			s.seen.removeOutput(id)
		}
	}
	s.outputs = s.outputs[:n]
}

// candidates returns the row to choose from: all logits, or those of the allowed ids in order.
func (s *Sampler) candidates(logits []float32) []float32 {
	if s.allowed == nil {
		return logits
	}
	s.compact = s.compact[:0]
	for _, id := range s.allowed {
		s.compact = append(s.compact, logits[id])
	}
	return s.compact
}

// Output is what one planned request got out of a step.
type Output struct {
	// Sampled are the new tokens: one when the step reached the end of what is known, none after a chunk of prefill.
	Sampled []Token
	// PromptLogprobs, when the request asked for them, score the prompt tokens that follow the positions of this step.
	PromptLogprobs []Token
	// Err ends this request; the others of the step are not concerned.
	Err error
}
