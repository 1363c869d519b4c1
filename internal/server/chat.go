package server

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quire-ai/quire/internal/chat"
	"github.com/quire-ai/quire/internal/openai"
)

// chat answers POST /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) error {
	var req openai.ChatRequest
	if err := s.decode(w, r, &req); err != nil {
		return err
	}
	if fault := req.Validate(s.limits()); fault != nil {
		return fault
	}
	j, err := s.newJob(w, r, openai.Chat, &req.Common)
	if err != nil {
		return err
	}
	switch {
	case req.MaxCompletionTokens != nil:
		j.ask.MaxTokens = *req.MaxCompletionTokens
	case req.MaxTokens != nil:
		j.ask.MaxTokens = *req.MaxTokens
	}
	if req.Logprobs {
		j.logprobs = true
		j.ask.Sampling.Logprobs = 0
		if req.TopLogprobs != nil {
			j.ask.Sampling.Logprobs = s.alternatives(*req.TopLogprobs)
		}
	}
	if last := req.Messages[len(req.Messages)-1]; req.Echo && last.Content != nil {
		j.echo = *last.Content // of a chat not the whole prompt, as in vLLM
	}
	p, err := s.chatPrompt(r.Context(), &req, j.ask.MaxTokens)
	if err != nil {
		return err
	}
	j.prompts = []prompt{p}
	return s.generate(w, r, j)
}

// chatPrompt renders and tokenizes the conversation of a request.
func (s *Server) chatPrompt(ctx context.Context, req *openai.ChatRequest, maxTokens int) (prompt, error) {
	text, err := s.render(ctx, &conversation{
		messages: req.Messages, tools: req.Tools, documents: req.Documents, arguments: req.ChatTemplateKwargs,
		noPrompt: req.AddGenerationPrompt != nil && !*req.AddGenerationPrompt, unfinished: req.ContinueFinalMessage,
		effort: req.ReasoningEffort,
	})
	if err != nil {
		return prompt{}, err
	}
	p, err := s.encode(text, false, &req.Common)
	if err == nil {
		err = s.truncate(&p, &req.Common, maxTokens)
	}
	return p, err
}

// conversation is what a chat template turns into a prompt.
type conversation struct {
	messages   []openai.Message
	tools      jsontext.Value
	documents  jsontext.Value
	arguments  jsontext.Value // chat_template_kwargs
	effort     *string        // reasoning_effort
	noPrompt   bool           // do not open the answer
	unfinished bool           // the answer continues the last message
}

// render turns a conversation into a prompt by the model's template.
func (s *Server) render(ctx context.Context, c *conversation) (string, error) {
	if s.model.Template == nil {
		return "", badValue("messages", "the model %s has no chat template: use /v1/completions, or start with --chat-template", s.model.Name)
	}
	messages := &chat.List{}
	for i := range c.messages {
		m, err := s.messageValue(&c.messages[i])
		if err != nil {
			return "", err
		}
		messages.Items = append(messages.Items, m)
	}
	extra := &chat.Dict{}
	if c.effort != nil {
		extra.Set("reasoning_effort", chat.Str(*c.effort))
	}
	if args, ok := given(c.arguments).(*chat.Dict); ok {
		for key, value := range args.All {
			if name, ok := key.(chat.Str); ok {
				extra.Set(string(name), value)
			}
		}
	}
	text, err := s.model.Template.RenderConversation(ctx, &chat.Conversation{
		Messages: messages, Tools: given(c.tools), Documents: given(c.documents), Extra: extra,
		AddGenerationPrompt: !c.noPrompt, ContinueFinalMessage: c.unfinished, Special: s.model.SpecialTokens,
	}, chat.Options{Now: time.Now()})
	if err != nil {
		return "", &promptError{err}
	}
	return text, nil
}

// promptError is why a conversation could not be turned into a prompt.
type promptError struct{ error }

// Unwrap returns the error of the template.
func (e *promptError) Unwrap() error { return e.error }

// given is the value of a field, nil if it was left out or null.
func given(raw jsontext.Value) chat.Value {
	if len(raw) == 0 || raw.Kind() == 'n' {
		return nil
	}
	v, err := chat.FromJSON(raw)
	if err != nil { // an integer beyond Python's own limit
		return nil
	}
	return v
}
