package sample

import (
	"math"
	"slices"
)

// counts holds the tokens seen so far, in order of first appearance.
type counts struct {
	index  map[int32]int // id → position in tokens
	tokens []count
}

type count struct {
	id      int32
	prompt  bool // in the prompt
	outputs int  // occurrences in the output
}

func (c *counts) addPrompt(prompt []int32) {
	c.index = make(map[int32]int)
	for _, id := range prompt {
		c.at(id).prompt = true
	}
}

func (c *counts) addOutput(id int32) { c.at(id).outputs++ }

func (c *counts) removeOutput(id int32) { c.at(id).outputs-- }

func (c *counts) at(id int32) *count {
	i, ok := c.index[id]
	if !ok {
		i = len(c.tokens)
		c.index[id] = i
		c.tokens = append(c.tokens, count{id: id})
	}
	return &c.tokens[i]
}

// editRow applies bias, penalties and masks to the logits and remembers what stood there.
func (s *Sampler) editRow(logits []float32) {
	s.edits = s.edits[:0]
	for _, b := range s.bias {
		s.set(logits, b.id, logits[b.id]+b.bias)
	}
	if s.params.penalises() {
		for _, c := range s.seen.tokens {
			if !c.prompt && c.outputs == 0 {
				continue // its outputs were sampled anew
			}
			s.set(logits, c.id, s.penalised(logits[c.id], c.outputs))
		}
	}
	for _, word := range s.params.BadWords {
		last := len(word) - 1
		if n := len(s.outputs) - last; n >= 0 && slices.Equal(s.outputs[n:], word[:last]) {
			s.set(logits, word[last], masked)
		}
	}
	if len(s.outputs) < s.params.MinTokens {
		for _, id := range s.params.StopIDs {
			s.set(logits, id, masked)
		}
	}
}

// penalised returns the logit of a seen token, finite: repetition first, then frequency and presence, as vLLM does.
func (s *Sampler) penalised(logit float32, outputs int) float32 {
	x := float64(logit)
	if x > 0 {
		x /= s.params.RepetitionPenalty
	} else {
		x = float64(x * s.params.RepetitionPenalty)
	}
	if outputs > 0 {
		x -= float64(s.params.FrequencyPenalty * float64(outputs))
		x -= s.params.PresencePenalty
	}
	return float32(max(-math.MaxFloat32, min(math.MaxFloat32, x)))
}

func (s *Sampler) set(logits []float32, id int32, value float32) {
	s.edits = append(s.edits, edit{id, logits[id]})
	logits[id] = value
}

// restore undoes the edits, the last first: an id may have been edited more than once.
func (s *Sampler) restore(logits []float32) {
	for _, e := range slices.Backward(s.edits) {
		logits[e.id] = e.raw
	}
}
