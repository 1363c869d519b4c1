package server

import (
	"net/http"

	"github.com/quire-ai/quire/internal/engine"
)

// health answers GET /health: 200 while requests are served, paused or finished before the end, 503 with the reason when
// work waits and nothing moves, when steps fail, or when the engine has ended. A router takes it as "send no more".
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	h := s.model.Engine.Health()
	status := http.StatusServiceUnavailable
	switch h.Status {
	case engine.OK, engine.Draining, engine.Paused:
		status = http.StatusOK
	}
	writeValue(w, status, h)
}

// live answers GET /health/live: 503 when only a restart helps.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	writeState(w, s.model.Engine.Live(), "live", "the engine has ended")
}

// ready answers GET /health/ready: 503 while no request is accepted.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	writeState(w, s.model.Engine.Ready(), "ready", "the engine accepts no requests")
}

func writeState(w http.ResponseWriter, ok bool, yes, no string) {
	if ok {
		writeJSON(w, http.StatusOK, []byte(`{"status":"`+yes+`"}`))
		return
	}
	writeJSON(w, http.StatusServiceUnavailable, []byte(`{"status":"`+no+`"}`))
}
