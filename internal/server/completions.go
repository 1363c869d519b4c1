package server

import (
	"net/http"

	"github.com/quire-ai/quire/internal/openai"
)

// defaultMaxTokens is the length of a completion that asks for none, OpenAI's.
const defaultMaxTokens = 16

// completion answers POST /v1/completions.
func (s *Server) completion(w http.ResponseWriter, r *http.Request) error {
	var req openai.CompletionRequest
	if err := s.decode(w, r, &req); err != nil {
		return err
	}
	if fault := req.Validate(s.limits()); fault != nil {
		return fault
	}
	j, err := s.newJob(w, r, openai.Text, &req.Common)
	if err != nil {
		return err
	}
	j.ask.MaxTokens = defaultMaxTokens
	if req.MaxTokens != nil {
		j.ask.MaxTokens = *req.MaxTokens
	}
	if j.promptOnly = j.ask.MaxTokens == 0; j.promptOnly {
		j.ask.MaxTokens = 1 // the engine computes a token to score the prompt; it is not shown
	}
	if req.Logprobs != nil {
		j.logprobs = true
		j.ask.Sampling.Logprobs = s.alternatives(*req.Logprobs)
		if req.Echo && req.PromptLogprobs == nil {
			j.ask.Sampling.PromptLogprobs = j.ask.Sampling.Logprobs
		}
	}
	if j.prompts, err = s.textPrompts(&req, j.ask.MaxTokens); err != nil {
		return err
	}
	return s.generate(w, r, j)
}

// textPrompts tokenizes the prompts of a completion.
func (s *Server) textPrompts(req *openai.CompletionRequest, maxTokens int) ([]prompt, error) {
	prompts := make([]prompt, 0, req.Prompt.Len())
	for _, text := range req.Prompt.Texts {
		p, err := s.encode(text, true, &req.Common)
		if err != nil {
			return nil, err
		}
		prompts = append(prompts, p)
	}
	for _, ids := range req.Prompt.Tokens {
		p := prompt{ids: ids}
		if req.Echo {
			p.text = s.model.Tokenizer.Decode(ids, false)
		}
		prompts = append(prompts, p)
	}
	for i := range prompts {
		if err := s.truncate(&prompts[i], &req.Common, maxTokens); err != nil {
			return nil, err
		}
	}
	return prompts, nil
}
