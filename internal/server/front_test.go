package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A front answers from the moment it listens: 503 while the model loads, alive all the time, then as the server does, on
// the same connections.
func TestFrontAnswersWhileTheModelLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fixture, p := newFixture(t, setup{}), newPipes()
		f := NewFront(p, slog.New(slog.DiscardHandler))
		client := p.client()
		get := func(path string, code int, body string) {
			t.Helper()
			r, err := client.Get("http://pipe" + path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			if err != nil || r.StatusCode != code || !strings.Contains(string(text), body) {
				t.Errorf("%s: %d %s %v, want %d %s", path, r.StatusCode, text, err, code, body)
			}
			if code == http.StatusServiceUnavailable && r.Header.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", path)
			}
		}
		get("/v1/models", 503, "the model is loading")
		get("/health", 503, "the model is loading")
		get("/health/live", 200, "loading")
		if code, text, err := p.post(`{"prompt":"ab"}`); code != 503 || err != nil {
			t.Errorf("completion while loading: %d %s %v", code, text, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.Serve(ctx, fixture.Server, time.Second) }()
		synctest.Wait()
		get("/v1/models", 200, "max_model_len")
		get("/health", 200, "ok")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := p.dial(); err == nil {
			t.Error("the listener is open after Serve")
		}
	})
}

// A front whose model fails to load closes the port.
func TestFrontCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		f := NewFront(p, slog.New(slog.DiscardHandler))
		synctest.Wait()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := p.dial(); err == nil {
			t.Error("the listener is open after Close")
		}
	})
}
