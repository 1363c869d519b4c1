package server

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/quire-ai/quire/internal/engine"
)

// resetPrefixCache answers POST /reset_prefix_cache: 200 once nothing cached is left, 409 while blocks are in use, unless
// ?reset_running_requests=true has running requests computed again.
func (s *Server) resetPrefixCache(w http.ResponseWriter, r *http.Request) {
	running := false
	if v := r.URL.Query().Get("reset_running_requests"); v != "" {
		var err error
		if running, err = strconv.ParseBool(v); err != nil {
			writeError(w, apiError(badValue("reset_running_requests", "reset_running_requests must be true or false, got %q", v)))
			return
		}
	}
	s.control(w, "reset", s.model.Engine.ResetPrefixCache(r.Context(), running))
}

// pauseModes are the values of ?mode= of POST /pause; abort is vLLM's default.
var pauseModes = map[string]engine.PauseMode{
	"": engine.PauseAbort, "abort": engine.PauseAbort, "wait": engine.PauseWait, "keep": engine.PauseKeep,
}

// pause answers POST /pause once nothing runs any more.
func (s *Server) pause(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("mode")
	mode, ok := pauseModes[name]
	if !ok {
		writeError(w, apiError(badValue("mode", "mode must be abort, wait or keep, got %q", name)))
		return
	}
	s.control(w, "paused", s.model.Engine.Pause(r.Context(), mode))
}

// resume answers POST /resume.
func (s *Server) resume(w http.ResponseWriter, r *http.Request) {
	s.control(w, "resumed", s.model.Engine.Resume(r.Context()))
}

// isPaused answers GET /is_paused.
func (s *Server) isPaused(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, append(strconv.AppendBool([]byte(`{"is_paused":`), s.model.Engine.Paused()), '}'))
}

// cachedBlocks answers GET /kv_cache/blocks: the blocks that the pool holds, by the names that KV events give them, in order.
// It is for whoever doubts a router's view of this server.
func (s *Server) cachedBlocks(w http.ResponseWriter, r *http.Request) {
	hashes, err := s.model.Engine.CachedBlocks(r.Context())
	if err != nil {
		writeError(w, apiError(err))
		return
	}
	names := make([]uint64, len(hashes))
	for i := range hashes {
		names[i] = hashes[i].Wire()
	}
	slices.Sort(names)
	names = slices.Compact(names) // cache groups have a block each
	body := []byte(`{"blocks":[`)
	for i, name := range names {
		if i > 0 {
			body = append(body, ',')
		}
		body = strconv.AppendUint(body, name, 10)
	}
	writeJSON(w, http.StatusOK, append(body, `]}`...))
}

// control answers for an operation on the engine: what is now so, or why not.
func (s *Server) control(w http.ResponseWriter, done string, err error) {
	if err != nil {
		writeError(w, apiError(err))
		return
	}
	writeState(w, true, done, "")
}
