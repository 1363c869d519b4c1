package quire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quire-ai/quire"
)

// open loads the tiny model with a KV cache of 64 tokens.
func open(t *testing.T) *quire.Engine {
	t.Helper()
	e, err := quire.Open(t.Context(), quire.Options{Model: tinyModel, KVCacheTokens: 64, Threads: 1, CPU: "generic"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// An engine says what it is: the name of the file, the longest request that the cache holds, and its plan in one line.
func TestEngineDescribesItself(t *testing.T) {
	e := open(t)
	if got := e.Model(); got != "tiny" {
		t.Errorf("model %q, want tiny", got)
	}
	if got := e.MaxTokens(); got != 65 {
		t.Errorf("longest request %d tokens, want the 64 of the cache and the last, which needs no KV; not the model's 256", got)
	}
	plan := e.MemoryPlan()
	for _, want := range []string{"64 tokens", "generic, 1 thread"} {
		if !strings.Contains(plan, want) || strings.Contains(plan, "\n") {
			t.Errorf("memory plan %q, want one line with %q", plan, want)
		}
	}
}

// Text goes through tokens and back, special tokens left out.
func TestEngineTokens(t *testing.T) {
	e := open(t)
	tokens := e.Tokenize("A quire is<|end|>")
	if len(tokens) != 4 {
		t.Errorf("tokens %v, want three words and the end", tokens)
	}
	if got := e.Detokenize(tokens); got != "A quire is" {
		t.Errorf("text %q", got)
	}
}

// A shutdown lets what runs end and refuses what comes; a request too long for the cache is refused with the numbers.
func TestEngineRefusals(t *testing.T) {
	e := open(t)
	long := quire.Request{Prompt: strings.Repeat(" a", 80), MaxTokens: 1}
	for _, err := range e.Generate(t.Context(), long) {
		if err == nil || !strings.Contains(err.Error(), "80") || !strings.Contains(err.Error(), "64") {
			t.Errorf("80 tokens on a cache of 64: %v", err)
		}
	}
	said := ""
	for tok, err := range e.Generate(t.Context(), quire.Request{Prompt: "A quire", MaxTokens: 16}) {
		if err != nil {
			t.Fatal(err)
		}
		said += tok.Text
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if said != " is a gathering of pages." {
		t.Errorf("said %q", said)
	}
	for _, err := range e.Generate(t.Context(), quire.Request{Prompt: "A quire"}) {
		if !errors.Is(err, quire.ErrDraining) {
			t.Errorf("after Shutdown: %v, want ErrDraining", err)
		}
	}
}
