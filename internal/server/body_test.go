package server

import (
	"strings"
	"testing"
)

// Many bodies at once, each within its own bound, do not take all memory: what exceeds the bound of all of them together is
// refused, and room comes back when a request has been read.
func TestOpenBodiesAreBoundedTogether(t *testing.T) {
	f := newFixture(t, setup{})
	others := f.openBytes - 1000
	if !f.openBodies.TryAcquire(others) {
		t.Fatal("bodies are held by nobody")
	}
	long := `{"prompt":"` + strings.Repeat("a", 1000) + `","max_tokens":1}`
	const short = `{"prompt":"ab","max_tokens":1}`
	rec := f.do("POST", "/v1/completions", long)
	if rec.Code != 503 || !strings.Contains(rec.Body.String(), "exceed 268435456 bytes") || rec.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s, want 503 and the bound", rec.Code, rec.Body)
	}
	if rec := f.do("POST", "/v1/completions", short); rec.Code != 200 {
		t.Errorf("a short request beside: %d %s", rec.Code, rec.Body)
	}
	f.openBodies.Release(others)
	if rec := f.do("POST", "/v1/completions", long); rec.Code == 503 {
		t.Errorf("with room again: %d %s", rec.Code, rec.Body)
	}
	if !f.openBodies.TryAcquire(f.openBytes) {
		t.Error("a request that was answered still holds bytes")
	}
}
