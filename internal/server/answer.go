package server

import (
	"net/http"

	"github.com/quire-ai/quire/internal/openai"
)

// answer sends what a job gives: piece by piece, or whole.
type answer interface {
	// add takes the next piece of a choice. Its error ends the job.
	add(c *choice, d openai.Delta) error
	// end finishes the answer after the last piece, or after an error. It returns an error that the client has not been told.
	end(err error) error
	// usage counts the tokens so far.
	usage() openai.Usage
}

func newAnswer(w http.ResponseWriter, s *Server, j *job, choices []*choice) answer {
	if j.common.Stream {
		return newStream(w, j, choices)
	}
	return newWhole(w, s, j, choices)
}

// whole joins the pieces of every choice and sends one JSON document.
type whole struct {
	w       http.ResponseWriter
	s       *Server
	j       *job
	choices []*choice
	parts   []openai.Choice // by index
	text    [][]byte        // by index
}

func newWhole(w http.ResponseWriter, s *Server, j *job, choices []*choice) *whole {
	return &whole{w: w, s: s, j: j, choices: choices, parts: make([]openai.Choice, len(choices)), text: make([][]byte, len(choices))}
}

func (a *whole) usage() openai.Usage { return usage(a.choices) }

// add implements answer.
func (a *whole) add(_ *choice, d openai.Delta) error {
	p := &a.parts[d.Index]
	a.text[d.Index] = append(a.text[d.Index], d.Text...)
	p.Logprobs = append(p.Logprobs, d.Logprobs...)
	p.TokenIDs = append(p.TokenIDs, d.TokenIDs...)
	if d.PromptTokenIDs != nil {
		p.PromptTokenIDs = d.PromptTokenIDs
	}
	if d.FinishReason != "" {
		p.FinishReason, p.StopReason = d.FinishReason, d.StopReason
	}
	return nil
}

// end implements answer.
func (a *whole) end(err error) error {
	if err != nil {
		return err
	}
	r := openai.Response{Header: a.j.header, Choices: a.parts, Usage: a.usage()}
	for i, c := range a.choices {
		p := &a.parts[i]
		p.Index, p.Text = i, string(a.text[i])
		if a.j.common.PromptLogprobs != nil {
			p.PromptLogprobs = a.s.promptLogprobs(a.j, c)
		}
	}
	if a.j.header.Kind == openai.Chat {
		r.PromptLogprobs, r.PromptTokenIDs = a.parts[0].PromptLogprobs, a.parts[0].PromptTokenIDs
		if a.j.common.ReturnPromptText {
			r.PromptText = &a.j.prompts[0].text
		}
	}
	writeJSON(a.w, http.StatusOK, r.Append(nil))
	return nil
}
