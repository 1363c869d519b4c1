package server

import (
	"fmt"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/openai"
	"github.com/quire-ai/quire/internal/tokenizer"
)

// prompt is what choices continue.
type prompt struct {
	ids  []int32
	text string // empty for a prompt of token ids that nobody wants to read
}

// encode turns a text into a prompt. A text that cannot fit, however its tokens fall, is refused before it is tokenized.
func (s *Server) encode(text string, special bool, c *openai.Common) (prompt, error) {
	if limit := s.model.Engine.MaxTokens(); c.TruncatePromptTokens == nil && len(text) > limit*s.longest {
		return prompt{}, &statusError{400, typeBadRequest, "input_text", fmt.Sprintf(
			"prompt of %d bytes has at least %d tokens and exceeds the limit of %d", len(text), (len(text)+s.longest-1)/s.longest, limit)}
	}
	if c.AddSpecialTokens != nil {
		special = *c.AddSpecialTokens
	}
	ids := s.model.Tokenizer.Encode(text, tokenizer.Options{AddSpecial: special, ParseSpecial: true})
	return prompt{ids: ids, text: text}, nil
}

// truncate cuts a prompt as the request asks: to a number of tokens, or to what leaves room for its answer.
func (s *Server) truncate(p *prompt, c *openai.Common, maxTokens int) error {
	if c.TruncatePromptTokens == nil {
		return nil
	}
	limit := s.model.Engine.MaxTokens()
	keep := *c.TruncatePromptTokens
	switch {
	case keep > limit:
		return badValue("truncate_prompt_tokens", "truncate_prompt_tokens must be at most %d, the longest request, got %d", limit, keep)
	case keep < 0:
		if keep = limit - max(maxTokens, 1); keep < 1 {
			return &engine.TooLongError{Prompt: 1, MaxTokens: maxTokens, Limit: limit, Resource: "context"}
		}
	}
	if len(p.ids) <= keep {
		return nil
	}
	if c.TruncationSide == "right" {
		p.ids = p.ids[:keep]
	} else {
		bos := s.model.Tokenizer.AddBOS() && p.ids[0] == s.model.Tokenizer.BOS()
		p.ids = p.ids[len(p.ids)-keep:]
		if bos && keep > 0 {
			p.ids[0] = s.model.Tokenizer.BOS()
		}
	}
	p.text = s.model.Tokenizer.Decode(p.ids, false)
	return nil
}

// wordIDs are the ways a word may be tokenized: at the beginning of a text and, with a space, within it.
func (s *Server) wordIDs(word string) [][]int32 {
	var out [][]int32
	for _, text := range []string{word, " " + word} {
		if ids := s.model.Tokenizer.Encode(text, tokenizer.Options{}); len(ids) > 0 {
			out = append(out, ids)
		}
	}
	return out
}

// longestPiece is the number of bytes that one token can stand for at most.
func longestPiece(t *tokenizer.Tokenizer) int {
	n := 1
	for id := range int32(t.VocabSize()) {
		n = max(n, len(t.Piece(id)))
	}
	return n
}
