package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quire-ai/quire/gguf"
)

// TestPullScripts runs the transcripts of testdata/pull beside a server that has org/repo/tiny.gguf, as Hugging Face would.
func TestPullScripts(t *testing.T) {
	var b gguf.Builder
	b.Set("general.architecture", "llama")
	var file strings.Builder
	if _, err := b.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/org/repo/resolve/main/tiny.gguf", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Linked-Etag", fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(file.String()))))
		w.Header().Set("X-Linked-Size", fmt.Sprint(file.Len()))
		_, _ = w.Write([]byte(file.String()))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/pull",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HF_ENDPOINT", server.URL)
			return nil
		},
	})
}
