package server

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/sched"
)

func TestControl(t *testing.T) {
	f := newFixture(t, setup{options: Options{DevEndpoints: true, APIKeys: []string{"k"}}})
	for _, c := range []struct {
		method, path, key string
		code              int
		body              string
	}{
		{"POST", "/reset_prefix_cache", "k", 200, `{"status":"reset"}`},
		{"POST", "/reset_prefix_cache", "", 401, "Unauthorized"},
		{"POST", "/reset_prefix_cache?reset_running_requests=maybe", "k", 400, `must be true or false, got \"maybe\"`},
		{"POST", "/pause?mode=now", "k", 400, `mode must be abort, wait or keep, got \"now\"`},
		{"POST", "/pause", "", 401, "Unauthorized"},
		{"POST", "/pause?mode=keep", "k", 200, `{"status":"paused"}`},
		{"GET", "/is_paused", "k", 200, `{"is_paused":true}`},
		{"GET", "/health", "", 200, `"status":"paused"`},
		{"GET", "/health/ready", "", 503, ""},
		{"POST", "/resume", "k", 200, `{"status":"resumed"}`},
		{"GET", "/is_paused", "k", 200, `{"is_paused":false}`},
		{"GET", "/health/ready", "", 200, ""},
		{"GET", "/pause", "k", 405, "use POST"},
		{"GET", "/kv_cache/blocks", "k", 200, `{"blocks":[]}`},
		{"GET", "/kv_cache/blocks", "", 401, "Unauthorized"},
	} {
		rec := f.do(c.method, c.path, "", "Authorization", "Bearer "+c.key)
		if rec.Code != c.code || !strings.Contains(rec.Body.String(), c.body) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, rec.Code, rec.Body, c.code, c.body)
		}
	}
	if rec := newFixture(t, setup{}).do("POST", "/pause", ""); rec.Code != http.StatusNotFound {
		t.Errorf("/pause without the flag: %d, want 404", rec.Code)
	}
}

// A reset is refused while requests use blocks, and says so; with reset_running_requests they are computed again, and
// give the text they give anyway.
func TestResetWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stepped, gate := make(chan struct{}), make(chan struct{})
		f := newFixture(t, setup{toy: executortest.Options{Step: func(*sched.Plan) error {
			stepped <- struct{}{}
			<-gate
			return nil
		}}})
		const ask = `{"prompt":"hello","max_tokens":6,"temperature":0}`
		said := make(chan string, 2)
		request := func() { said <- text(f.do("POST", "/v1/completions", ask).Body.String()) }
		go request()
		reset := func(query string, want int) {
			<-stepped // in a step
			done := make(chan int, 1)
			go func() { done <- f.do("POST", "/reset_prefix_cache"+query, "").Code }()
			synctest.Wait() // the reset waits for the step's end
			gate <- struct{}{}
			if code := <-done; code != want {
				t.Errorf("reset%s while a request runs: %d, want %d", query, code, want)
			}
		}
		reset("", http.StatusConflict)
		reset("?reset_running_requests=true", http.StatusOK)
		go func() {
			for range stepped {
				gate <- struct{}{}
			}
		}()
		first := <-said
		go request()
		if second := <-said; first == "" || first != second {
			t.Errorf("the request that was reset got %s, the same without a reset %s", first, second)
		}
		close(stepped)
	})
}

// text is what an answer of one choice says.
func text(body string) string {
	_, rest, _ := strings.Cut(body, `"text":`)
	said, _, _ := strings.Cut(rest, `,"logprobs"`)
	return said
}
