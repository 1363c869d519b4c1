package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/metric"
	"github.com/quire-ai/quire/internal/openai"
)

const (
	headerTimeout  = 10 * time.Second  // for the header of a request: a client that sends it byte by byte is cut off
	requestTimeout = 60 * time.Second  // for header and body together
	writeTimeout   = 30 * time.Second  // for one frame or one answer: a client that stops reading is cut off
	idleTimeout    = 120 * time.Second // for the next request on a connection
	maxHeader      = 64 << 10          // bytes

	farewellTimeout = time.Second // for the last words to a request that is cut off
)

// Options is what a server serves and how.
type Options struct {
	Model *llm.Model
	// Names are the model's names in the API; answers use the first. Empty is the model's own.
	Names []string
	// APIKeys are the bearer tokens of which a client must send one for paths under /v1. Empty lets anyone in.
	APIKeys []string
	// MaxRequestBytes bounds a request's body.
	MaxRequestBytes int64
	// MaxLogprobs bounds the alternatives a position that a request may ask for; -1 has no bound.
	MaxLogprobs int
	// Priorities says that the scheduler heeds priorities.
	Priorities bool
	// StreamInterval is the number of tokens a frame carries, at least 1.
	StreamInterval int
	// DevEndpoints offers /pause and /resume.
	DevEndpoints bool
	// Seed keys the random numbers of requests that name no seed; 0 draws a key.
	Seed uint64
	// LogRequests logs a line for each request.
	LogRequests bool
	// Version is what GET /version says.
	Version string
	// Metrics answers GET /metrics and is told of each request. It may be nil.
	Metrics *metric.Metrics
	Log     *slog.Logger
}

// Server answers HTTP requests about one model. It is an http.Handler, or runs a listener with Serve.
type Server struct {
	opts    Options
	model   *llm.Model
	log     *slog.Logger
	created time.Time // of the model card
	keys    keys
	seeds   seeds
	routes  *http.ServeMux
	longest int          // bytes that a token stands for at most
	parts   bool         // the chat template takes contents apart
	active  atomic.Int64 // requests to generate, for GET /load
}

// New prepares a server. The model remains the caller's to close.
func New(o Options) *Server {
	if len(o.Names) == 0 {
		o.Names = []string{o.Model.Name}
	}
	s := &Server{opts: o, model: o.Model, log: o.Log, created: time.Now(), keys: newKeys(o.APIKeys), seeds: newSeeds(o.Seed)}
	s.longest = longestPiece(o.Model.Tokenizer)
	s.parts = o.Model.Template != nil && o.Model.Template.WantsContentParts()
	s.routes = s.newRoutes()
	return s
}

// limits are the bounds of requests.
func (s *Server) limits() openai.Limits {
	return openai.Limits{MaxLogprobs: s.opts.MaxLogprobs, VocabSize: s.model.Engine.Vocab(), Priorities: s.opts.Priorities}
}

// Serve answers on l until ctx ends. Then it accepts no more connections, refuses new requests on open ones with 503 and
// gives running requests the time grace to end; what is left is cut off. It closes l and returns when no request runs.
func (s *Server) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	base, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	hs := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- hs.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	return s.shutdown(hs, grace, cut)
}

// errCutOff ends a request that did not end within the grace period.
var errCutOff = errors.New("the server is shutting down: the request was cut off")

// shutdown ends a server that was told to. What outlives the grace period is cut: it is told so, as far as the client
// takes it within a moment, and then the connections are closed.
func (s *Server) shutdown(hs *http.Server, grace time.Duration, cut context.CancelCauseFunc) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	s.log.Info("shutting down", slog.Int64("requests", s.active.Load()), slog.Duration("grace", grace))
	drained := make(chan error, 1)
	go func() { drained <- s.model.Engine.Drain(ctx) }()
	err := hs.Shutdown(ctx)
	if derr := <-drained; err == nil {
		err = derr
	}
	if err == nil {
		return nil
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.log.Warn("requests cut off at the end of the grace period", slog.Int64("requests", s.active.Load()))
	cut(errCutOff)
	told, done := context.WithTimeout(context.Background(), farewellTimeout)
	defer done()
	_ = hs.Shutdown(told) // what is left then is closed on
	return hs.Close()
}
