package server

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quire-ai/quire/internal/openai"
)

// servedName is the model's name as an answer gives it, or an error if the request asks for another model.
func (s *Server) servedName(asked string) (string, error) {
	if asked == "" {
		return s.opts.Names[0], nil
	}
	if !slices.Contains(s.opts.Names, asked) {
		return "", notFound("model", "The model `%s` does not exist.", asked)
	}
	return s.opts.Names[0], nil
}

// card describes the model under one of its names.
func (s *Server) card(name string) openai.ModelCard {
	return openai.ModelCard{ID: name, Created: s.created, Root: s.model.Path, MaxModelLen: s.model.MaxModelLen}
}

// listModels answers GET /v1/models.
func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) {
	cards := make([]openai.ModelCard, len(s.opts.Names))
	for i, name := range s.opts.Names {
		cards[i] = s.card(name)
	}
	writeJSON(w, http.StatusOK, openai.AppendModels(nil, cards))
}

// getModel answers GET /v1/models/{id}.
func (s *Server) getModel(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !slices.Contains(s.opts.Names, id) {
		writeError(w, apiError(notFound("model", "The model `%s` does not exist.", id)))
		return
	}
	writeJSON(w, http.StatusOK, s.card(id).Append(nil))
}

// version answers GET /version.
func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	body, _ := jsontext.AppendQuote([]byte(`{"version":`), s.opts.Version)
	writeJSON(w, http.StatusOK, append(body, '}'))
}

// load answers GET /load: how many requests to generate are being served.
func (s *Server) load(w http.ResponseWriter, _ *http.Request) {
	body := strconv.AppendInt([]byte(`{"server_load":`), s.active.Load(), 10)
	writeJSON(w, http.StatusOK, append(body, '}'))
}

// metrics answers GET /metrics.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if s.opts.Metrics == nil {
		writeError(w, apiError(notFound("", "no such path: %s", r.URL.Path)))
		return
	}
	s.opts.Metrics.ServeHTTP(w, r)
}

// writeValue answers with a value of ours, written as JSON.
func writeValue(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v, json.FormatNilSliceAsNull(true))
	if err != nil {
		writeError(w, apiError(err))
		return
	}
	writeJSON(w, status, body)
}
