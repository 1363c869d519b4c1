package llm_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/quire-ai/quire/internal/connector/valkey/valkeytest"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/sample"
)

func sameTokens(a, b []sample.Token) bool {
	return slices.EqualFunc(a, b, func(a, b sample.Token) bool { return a.ID == b.ID && a.Logprob == b.Logprob })
}

// gemma3 loads a tiny model with one full and six windowed layers.
func gemma3(t *testing.T, change func(o *llm.Options)) *llm.Model {
	t.Helper()
	o := llm.Options{Model: filepath.Join("..", "model", "testdata", "tiny", "gemma3", "gemma3-f16.gguf"), Threads: 1, KVCacheTokens: 512}
	change(&o)
	m, err := llm.Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// again asks for a prompt twice: after other prompts have taken the cache, or after a restart. It returns both answers and how
// much of the prompt came from a tier the second time.
func again(t *testing.T, restart bool, change func(o *llm.Options)) (cold, warm []sample.Token, loaded int) {
	t.Helper()
	m := gemma3(t, change)
	p := ids(1, 200, m.Engine.Vocab())
	cold, _ = answer(t, m, p, 12)
	if restart {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		m = gemma3(t, change)
	} else {
		for i := range 6 {
			answer(t, m, ids(2+i, 400, m.Engine.Vocab()), 4)
		}
	}
	warm, f := answer(t, m, p, 12)
	if n := m.Engine.Snapshot(); n.FreeBlocks != n.UsableBlocks {
		t.Errorf("%d of %d blocks are free", n.FreeBlocks, n.UsableBlocks)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	return cold, warm, f.LoadedTokens
}

// testWindows holds a model with windows to the bits of one that keeps the whole context, cold and from a tier, which must
// bring all of the prompt's chunks but what its last token lies in.
func testWindows(t *testing.T, chunk int, restart bool, tiers func() llm.Tiers) {
	for _, blockSize := range []int{8, 16, 32} {
		set := func(o *llm.Options) { o.Tiers, o.Engine.Sched.BlockSize = tiers(), blockSize }
		want, _, _ := again(t, false, func(o *llm.Options) { o.WholeContext, o.Tiers.RAM = true, -1 })
		cold, warm, loaded := again(t, restart, set)
		if !sameTokens(cold, want) || !sameTokens(warm, want) {
			t.Errorf("blocks of %d: cold %v, warm %v; with the whole context %v", blockSize, cold, warm, want)
		}
		if full := 199 / max(chunk, blockSize) * max(chunk, blockSize); loaded != full && chunk > 0 {
			t.Errorf("blocks of %d: %d tokens loaded, want %d", blockSize, loaded, full)
		}
	}
}

func TestWindowsFromPool(t *testing.T) {
	testWindows(t, 0, false, func() llm.Tiers { return llm.Tiers{RAM: -1} })
}

func TestWindowsFromMemory(t *testing.T) {
	testWindows(t, 1, false, func() llm.Tiers { return llm.Tiers{} })
}

func TestWindowsFromDisk(t *testing.T) {
	dir := t.TempDir()
	testWindows(t, 1, true, func() llm.Tiers { return llm.Tiers{RAM: -1, Disk: dir, DiskBytes: 64 << 20} })
}

func TestWindowsFromValkey(t *testing.T) {
	url := valkeytest.Start(t).URL
	testWindows(t, 64, true, func() llm.Tiers { return llm.Tiers{RAM: -1, Valkey: url} })
}

// TestWindowsSaveMemory: a KV cache of so many tokens takes what one request of that length holds at most, and such a request
// is served.
func TestWindowsSaveMemory(t *testing.T) {
	m := gemma3(t, func(o *llm.Options) { o.KVCacheTokens = 768; o.Engine.Sched.MaxNumBatchedTokens = 32 })
	defer m.Close()
	whole := gemma3(t, func(o *llm.Options) { o.KVCacheTokens, o.WholeContext = 768, true })
	defer whole.Close()
	t.Log(m.Plan)
	t.Log(whole.Plan)
	// Windows of 16 tokens and steps of 32 cover 4 blocks at most, in six groups of one layer; blocks of all seven layers
	// are seven times as large.
	if want := 48 + 6*4; m.Plan.Blocks != want || m.Plan.Tokens != 768 || m.Plan.LongestRequest != 769 {
		t.Errorf("plan %v; want %d blocks for 768 tokens", m.Plan, want)
	}
	if m.Plan.WholeBytes != 49*7*m.Plan.BlockBytes || m.Plan.KVBytes()*4 > whole.Plan.KVBytes() {
		t.Errorf("plan %v; with the whole context %v", m.Plan, whole.Plan)
	}
	p := ids(1, 760, m.Engine.Vocab())
	got, f := answer(t, m, p, 9)
	want, _ := answer(t, whole, p, 9)
	if !sameTokens(got, want) || len(got) != 9 {
		t.Errorf("760 tokens are answered with %v, %+v; with the whole context %v", got, f, want)
	}
}
