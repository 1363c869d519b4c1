package server

import (
	"fmt"
	"net/http"

	"github.com/quire-ai/quire/internal/openai"
)

// tokenized is the answer of POST /tokenize.
type tokenized struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []int32  `json:"tokens"`
	TokenStrs   []string `json:"token_strs"` // null unless asked for
}

// tokenize answers POST /tokenize.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	ids, strs, err := s.tokenIDs(w, r)
	if err != nil {
		writeError(w, apiError(err))
		return
	}
	writeValue(w, http.StatusOK, tokenized{Count: len(ids), MaxModelLen: s.model.MaxModelLen, Tokens: ids, TokenStrs: strs})
}

func (s *Server) tokenIDs(w http.ResponseWriter, r *http.Request) (ids []int32, strs []string, err error) {
	var req openai.TokenizeRequest
	if err := s.decode(w, r, &req); err != nil {
		return nil, nil, err
	}
	if _, err := s.servedName(req.Model); err != nil {
		return nil, nil, err
	}
	text, special, err := s.tokenizeText(r, &req)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.encode(text, special, &openai.Common{AddSpecialTokens: req.AddSpecialTokens, TruncatePromptTokens: new(-1)})
	if err != nil {
		return nil, nil, err
	}
	if p.ids == nil {
		p.ids = []int32{} // an empty text has no tokens, which is not null
	}
	if !req.ReturnTokenStrs {
		return p.ids, nil, nil
	}
	strs = make([]string, len(p.ids))
	for i, id := range p.ids {
		strs[i] = s.model.Tokenizer.Decode([]int32{id}, false)
	}
	return p.ids, strs, nil
}

// tokenizeText is what is to be tokenized, and whether special tokens are added to it by default.
func (s *Server) tokenizeText(r *http.Request, req *openai.TokenizeRequest) (string, bool, error) {
	switch {
	case req.Prompt != nil && req.Messages != nil:
		return "", false, badValue("prompt", "give prompt or messages, not both")
	case req.Prompt != nil:
		return *req.Prompt, true, nil
	case len(req.Messages) == 0:
		return "", false, badValue("prompt", "give prompt or messages")
	}
	text, err := s.render(r.Context(), &conversation{
		messages: req.Messages, tools: req.Tools, arguments: req.ChatTemplateKwargs,
		noPrompt: req.AddGenerationPrompt != nil && !*req.AddGenerationPrompt, unfinished: req.ContinueFinalMessage,
	})
	return text, false, err
}

// detokenize answers POST /detokenize.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	var req openai.DetokenizeRequest
	err := s.decode(w, r, &req)
	if err == nil {
		_, err = s.servedName(req.Model)
	}
	if err == nil && req.Tokens == nil {
		err = badValue("tokens", "give tokens, a list of token ids")
	}
	for i, id := range req.Tokens {
		if err == nil && (id < 0 || int(id) >= s.model.Tokenizer.VocabSize()) {
			err = badValue(fmt.Sprintf("tokens.%d", i), "tokens.%d is %d; the vocabulary ends at %d", i, id, s.model.Tokenizer.VocabSize()-1)
		}
	}
	if err != nil {
		writeError(w, apiError(err))
		return
	}
	writeValue(w, http.StatusOK, struct {
		Prompt string `json:"prompt"`
	}{s.model.Tokenizer.DecodeText(req.Tokens, false)})
}
