package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/quire-ai/quire/internal/openai"
)

// newRoutes is the table of what the server answers.
func (s *Server) newRoutes() *http.ServeMux {
	table := map[string]methods{
		"/v1/completions":             {http.MethodPost: s.generation(s.completion)},
		"/v1/chat/completions":        {http.MethodPost: s.generation(s.chat)},
		"/v1/completions/render":      {http.MethodPost: s.renderCompletion},
		"/v1/chat/completions/render": {http.MethodPost: s.renderChat},
		"/v1/models":                  {http.MethodGet: s.listModels},
		"/v1/models/{id...}":          {http.MethodGet: s.getModel},
		"/tokenize":                   {http.MethodPost: s.tokenize},
		"/detokenize":                 {http.MethodPost: s.detokenize},
		"/health":                     {http.MethodGet: s.health},
		"/health/live":                {http.MethodGet: s.live},
		"/health/ready":               {http.MethodGet: s.ready},
		"/ping":                       {http.MethodGet: s.health, http.MethodPost: s.health},
		"/version":                    {http.MethodGet: s.version},
		"/load":                       {http.MethodGet: s.load},
		"/metrics":                    {http.MethodGet: s.metrics},
		"/reset_prefix_cache":         {http.MethodPost: s.keyed(s.resetPrefixCache)},
		"/":                           nil,
	}
	if s.opts.DevEndpoints {
		table["/pause"] = methods{http.MethodPost: s.keyed(s.pause)}
		table["/resume"] = methods{http.MethodPost: s.keyed(s.resume)}
		table["/is_paused"] = methods{http.MethodGet: s.keyed(s.isPaused)}
		table["/kv_cache/blocks"] = methods{http.MethodGet: s.keyed(s.cachedBlocks)}
	}
	mux := http.NewServeMux()
	for path, methods := range table {
		mux.Handle(path, methods)
	}
	return mux
}

// methods answers one path by the method of the request. A nil methods is a path that does not exist.
type methods map[string]http.HandlerFunc

// ServeHTTP implements http.Handler.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m == nil {
		writeError(w, apiError(notFound("", "no such path: %s", r.URL.Path)))
		return
	}
	handler := m[r.Method]
	if handler == nil && r.Method == http.MethodHead {
		handler = m[http.MethodGet]
	}
	if handler == nil {
		allowed := make([]string, 0, len(m))
		for method := range m {
			allowed = append(allowed, method)
		}
		slices.Sort(allowed)
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		writeError(w, &openai.Error{
			Message: fmt.Sprintf("%s %s is not allowed: use %s", r.Method, r.URL.Path, strings.Join(allowed, " or ")),
			Type:    http.StatusText(http.StatusMethodNotAllowed), Code: http.StatusMethodNotAllowed,
		})
		return
	}
	handler(w, r)
}

// ServeHTTP implements http.Handler: every request passes here, and is authorised, recovered, counted and logged here.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	rec := &recorder{ResponseWriter: w}
	defer func() {
		cause := recover()
		if cause != nil && cause != http.ErrAbortHandler {
			s.panicked(rec, r, cause)
		}
		s.answered(rec, r, time.Since(start))
		if cause == http.ErrAbortHandler {
			panic(cause) // closes the connection
		}
	}()
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		s.keyed(s.routes.ServeHTTP)(rec, r)
		return
	}
	s.routes.ServeHTTP(rec, r)
}

// keyed lets only those pass who send a key, if keys are asked for.
func (s *Server) keyed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.keys.admit(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeJSON(w, http.StatusUnauthorized, []byte(`{"error":"Unauthorized"}`))
			return
		}
		next(w, r)
	}
}

// panicked answers for a handler that panicked: a fault of ours that must end this request only.
func (s *Server) panicked(w *recorder, r *http.Request, cause any) {
	s.log.Error("handler panicked", slog.String("path", r.URL.Path), slog.Any("cause", cause), slog.String("stack", string(debug.Stack())))
	if w.status == 0 {
		writeError(w, &openai.Error{Message: "internal error", Type: typeInternal, Code: http.StatusInternalServerError})
	}
}

// answered counts and logs a request that has been answered.
func (s *Server) answered(w *recorder, r *http.Request, took time.Duration) {
	if s.opts.Metrics != nil {
		_, pattern := s.routes.Handler(r)
		s.opts.Metrics.Requested(r.Method, pattern, w.status, took)
	}
	level := slog.LevelDebug
	if s.opts.LogRequests {
		level = slog.LevelInfo
	}
	if !s.log.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", w.status),
		slog.Duration("took", took.Round(time.Microsecond)), slog.String("client", r.RemoteAddr),
	}
	s.log.LogAttrs(r.Context(), level, "request answered", append(attrs, w.attrs...)...)
}

// recorder remembers the status of an answer, and what a handler adds to the line of the log.
type recorder struct {
	http.ResponseWriter
	status int // 0 while nothing was written
	attrs  []slog.Attr
}

// WriteHeader implements http.ResponseWriter. From here the client has writeTimeout to take the answer; a stream begins
// anew with each frame.
func (w *recorder) WriteHeader(status int) {
	w.status = status
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// extend gives the client writeTimeout from now.
func (w *recorder) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout)) // test recorders have none
}

// Unwrap is how http.ResponseController finds deadlines and flushing.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// note adds to the line of the log.
func note(w http.ResponseWriter, attrs ...slog.Attr) {
	if rec, ok := w.(*recorder); ok {
		rec.attrs = append(rec.attrs, attrs...)
	}
}

// keys are the digests of the API keys; none lets anyone in.
type keys [][sha256.Size]byte

func newKeys(list []string) keys {
	k := make(keys, len(list))
	for i, key := range list {
		k[i] = sha256.Sum256([]byte(key))
	}
	return k
}

// admit reports whether a request carries one of the keys. It takes the same time whichever key is wrong and how.
func (k keys) admit(r *http.Request) bool {
	if len(k) == 0 {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := 0
	for i := range k {
		found |= subtle.ConstantTimeCompare(k[i][:], got[:])
	}
	return found == 1 && strings.EqualFold(scheme, "bearer")
}
