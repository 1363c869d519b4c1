package server

import (
	"net/http"

	"github.com/quire-ai/quire/internal/openai"
)

// rendered is a prompt as the engine would get it. Routers ask for it to find the replica that holds its prefix.
type rendered struct {
	TokenIDs []int32 `json:"token_ids"`
}

// renderCompletion answers POST /v1/completions/render: one object for one prompt, a list for several.
func (s *Server) renderCompletion(w http.ResponseWriter, r *http.Request) {
	var req openai.CompletionRequest
	prompts, err := []prompt(nil), s.decode(w, r, &req)
	if err == nil {
		err = s.checked(req.Model, req.Validate(s.limits()))
	}
	if err == nil {
		prompts, err = s.textPrompts(&req, 1)
	}
	writeRendered(w, prompts, err)
}

// renderChat answers POST /v1/chat/completions/render.
func (s *Server) renderChat(w http.ResponseWriter, r *http.Request) {
	var req openai.ChatRequest
	prompts, err := make([]prompt, 1), s.decode(w, r, &req)
	if err == nil {
		err = s.checked(req.Model, req.Validate(s.limits()))
	}
	if err == nil {
		prompts[0], err = s.chatPrompt(r.Context(), &req, 1)
	}
	writeRendered(w, prompts, err)
}

// checked reports what is wrong with a request that was decoded.
func (s *Server) checked(model string, fault *openai.Fault) error {
	if fault != nil {
		return fault
	}
	_, err := s.servedName(model)
	return err
}

func writeRendered(w http.ResponseWriter, prompts []prompt, err error) {
	if err != nil {
		writeError(w, apiError(err))
		return
	}
	out := make([]rendered, len(prompts))
	for i, p := range prompts {
		out[i].TokenIDs = p.ids
	}
	if len(out) == 1 {
		writeValue(w, http.StatusOK, out[0])
		return
	}
	writeValue(w, http.StatusOK, out)
}
