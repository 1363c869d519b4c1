package llm_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quire-ai/quire/internal/connector/disk"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/sample"
)

// answer is what a prompt gets: ids and log probabilities.
func answer(t *testing.T, m *llm.Model, prompt []int32, n int) ([]sample.Token, engine.Finish) {
	t.Helper()
	params := sample.Default()
	params.Temperature, params.Logprobs = 0, 1
	h, err := m.Engine.Submit(t.Context(), &engine.Request{Prompt: prompt, MaxTokens: n, IgnoreEOS: true, Sampling: params})
	if err != nil {
		t.Fatal(err)
	}
	var out []sample.Token
	for tok, err := range h.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tok)
	}
	return out, h.Finish()
}

// ids returns a prompt of n tokens below vocab that depends on the seed from the first on.
func ids(seed, n, vocab int) []int32 {
	p := make([]int32, n)
	x := uint32(seed)*2654435761 + 99
	for i := range p {
		x = x*1664525 + 1013904223
		p[i] = int32(x>>8) % int32(vocab)
	}
	return p
}

// TestTiersGiveTheSameBits: tokens and log probabilities are those of a cold run, bit by bit, when KV comes back from a tier,
// for each block size.
func TestTiersGiveTheSameBits(t *testing.T) {
	path := filepath.Join("..", "model", "testdata", "tiny", "llama_gqa", "llama_gqa-f16.gguf")
	for _, blockSize := range []int{8, 16, 32} {
		o := llm.Options{Model: path, KVCacheTokens: 256, Threads: 1}
		o.Engine.Sched.BlockSize = blockSize
		m, err := llm.Load(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		vocab := m.Engine.Vocab()
		p := ids(1, 100, vocab)
		cold, f := answer(t, m, p, 12)
		if f.CachedTokens != 0 {
			t.Fatalf("%d tokens are cached at first", f.CachedTokens)
		}
		for i := range 3 {
			answer(t, m, ids(2+i, 200, vocab), 4)
		}
		warm, f := answer(t, m, p, 12)
		if want := 99 / blockSize * blockSize; f.LoadedTokens != want {
			t.Errorf("blocks of %d: %d tokens loaded, want %d", blockSize, f.LoadedTokens, want)
		}
		if !slices.EqualFunc(cold, warm, func(a, b sample.Token) bool { return a.ID == b.ID && a.Logprob == b.Logprob }) {
			t.Errorf("blocks of %d: cold %v, after a load %v", blockSize, cold, warm)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTiersOff(t *testing.T) {
	path := filepath.Join("..", "model", "testdata", "tiny", "llama_gqa", "llama_gqa-f16.gguf")
	m, err := llm.Load(t.Context(), llm.Options{Model: path, KVCacheTokens: 256, Threads: 1, Tiers: llm.Tiers{RAM: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if m.Tiers != nil {
		t.Error("there are tiers, though none was wanted")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestRestartIsWarm: after a restart the prompt comes from the disk, with the bits of the cold run; for another model, block
// size or salt it does not.
func TestRestartIsWarm(t *testing.T) {
	dir := t.TempDir()
	tiny := func(name string) string {
		return filepath.Join("..", "model", "testdata", "tiny", name, name+"-f16.gguf")
	}
	load := func(name string, blockSize int) *llm.Model {
		o := llm.Options{Model: tiny(name), KVCacheTokens: 512, Threads: 1, Tiers: llm.Tiers{RAM: -1, Disk: dir, DiskBytes: 64 << 20}}
		o.Engine.Sched.BlockSize = blockSize
		m, err := llm.Load(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	ask := func(name string, blockSize, wantLoaded int) []sample.Token {
		m := load(name, blockSize)
		tokens, f := answer(t, m, ids(1, 100, m.Engine.Vocab()), 12)
		if f.LoadedTokens != wantLoaded {
			t.Errorf("%s, blocks of %d: %d tokens loaded, want %d", name, blockSize, f.LoadedTokens, wantLoaded)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		return tokens
	}
	cold := ask("llama_gqa", 16, 0)
	warm := ask("llama_gqa", 16, 96)
	if !slices.EqualFunc(cold, warm, func(a, b sample.Token) bool { return a.ID == b.ID && a.Logprob == b.Logprob }) {
		t.Errorf("cold %v, after a restart %v", cold, warm)
	}
	ask("llama_gqa", 32, 0)
	ask("gemma3", 16, 0)
}

// TestFolderInUse: a second server on the folder is refused, or goes on without if nobody asked for the folder by name.
func TestFolderInUse(t *testing.T) {
	o := llm.Options{
		Model:         filepath.Join("..", "model", "testdata", "tiny", "llama_gqa", "llama_gqa-f16.gguf"),
		KVCacheTokens: 512, Threads: 1, Tiers: llm.Tiers{RAM: -1, Disk: t.TempDir(), DiskBytes: 64 << 20},
	}
	first, err := llm.Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := llm.Load(t.Context(), o); !errors.Is(err, disk.ErrInUse) {
		t.Errorf("a second server on the folder: %v", err)
	}
	o.Tiers.DiskOptional = true
	second, err := llm.Load(t.Context(), o)
	if err != nil || second.Tiers != nil {
		t.Fatalf("with an optional folder: %v; want a server without tiers", err)
	}
	for _, m := range []*llm.Model{first, second} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
