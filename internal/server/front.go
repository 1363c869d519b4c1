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

// Front answers on a listener from the start: while the model loads with 503, so that a probe or a client learns at once
// what it waits for, and then with the Server put behind it. Serve or Close ends it.
type Front struct {
	address net.Addr
	log     *slog.Logger
	http    *http.Server
	server  atomic.Pointer[Server] // nil while the model loads
	cut     context.CancelCauseFunc
	failed  chan error // why it no longer accepts
}

// NewFront begins to answer on l, which it closes in the end.
func NewFront(l net.Listener, log *slog.Logger) *Front {
	base, cut := context.WithCancelCause(context.Background())
	f := &Front{address: l.Addr(), log: log, cut: cut, failed: make(chan error, 1)}
	f.http = &http.Server{
		Handler:           f,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() { f.failed <- f.http.Serve(l) }()
	return f
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s := f.server.Load(); s != nil {
		s.ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/health/live" { // a restart would only begin anew
		writeState(w, true, "loading", "")
		return
	}
	writeError(w, &openai.Error{Message: "the model is loading", Type: typeUnavailable, Code: http.StatusServiceUnavailable})
}

// Serve puts s behind the front and returns when ctx has ended and no request runs: it accepts no more connections then,
// refuses new requests on open ones with 503 and gives running ones the time grace to end; what is left is cut off.
func (f *Front) Serve(ctx context.Context, s *Server, grace time.Duration) error {
	defer f.cut(nil)
	f.server.Store(s)
	select {
	case err := <-f.failed:
		return fmt.Errorf("serve %s: %w", f.address, err)
	case <-ctx.Done():
	}
	return f.shutdown(s, grace)
}

// Close ends a front that serves nothing. It does nothing after Serve.
func (f *Front) Close() error {
	f.cut(nil)
	return f.http.Close()
}

// Serve answers on l until ctx ends, as [Front.Serve] does.
func (s *Server) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	return NewFront(l, s.log).Serve(ctx, s, grace)
}

// errCutOff ends a request that did not end within the grace period.
var errCutOff = errors.New("the server is shutting down: the request was cut off")

// shutdown ends a server that was told to. What outlives the grace period is cut: it is told so, as far as the client
// takes it within a moment, and then the connections are closed.
func (f *Front) shutdown(s *Server, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	f.log.Info("shutting down", slog.Int64("requests", s.active.Load()), slog.Duration("grace", grace))
	drained := make(chan error, 1)
	go func() { drained <- s.model.Engine.Drain(ctx) }()
	err := f.http.Shutdown(ctx)
	if derr := <-drained; err == nil {
		err = derr
	}
	if err == nil {
		return nil
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	f.log.Warn("requests cut off at the end of the grace period", slog.Int64("requests", s.active.Load()))
	f.cut(errCutOff)
	told, done := context.WithTimeout(context.Background(), farewellTimeout)
	defer done()
	_ = f.http.Shutdown(told) // what is left then is closed on
	return f.http.Close()
}
