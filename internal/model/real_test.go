package model

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/golden"
	"github.com/quire-ai/quire/internal/testmodel"
)

const smolLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"

// TestRealModels holds published models to the exact result: the mean KL divergence over the stored positions is no
// more than llama.cpp's over the same ones, and greedy text is the same up to the first step that is too close to call.
func TestRealModels(t *testing.T) {
	if testing.Short() {
		t.Skip("3,400 tokens through three models")
	}
	dir, ok := sharedDir()
	if !ok {
		t.Skip("no golden data")
	}
	for folder, name := range map[string]string{
		"smollm2-135m-instruct-q4_1":         smolLM2,
		"qwen2.5-coder-0.5b-instruct-q4_k_m": "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf",
		"gemma3-270m-q4_k_m":                 "gemma-3-270m.Q4_K_M.gguf",
	} {
		t.Run(folder, func(t *testing.T) {
			m := newMachine(t, open(t, testmodel.Path(t, name)), setup{level: fastest(), threads: 2, maxRows: 512, tokens: 2048})
			paths, err := filepath.Glob(filepath.Join(dir, "golden/real", folder, "*.json"))
			if err != nil || len(paths) == 0 {
				t.Fatalf("no golden files: %v", err)
			}
			var reports []*golden.Report
			for _, path := range paths {
				f, err := golden.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				r, err := golden.Compare(f, goldenRunner{t, m}, golden.Blocks)
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Broken) > 0 {
					t.Errorf("%s: %q", r.Name, r.Broken)
				}
				reports = append(reports, r)
			}
			s := golden.Summarize(reports)
			t.Logf("mean KL %.6f over %d positions, llama.cpp %.6f", s.MeanKL, s.Positions, *s.MeanKLOfPeer)
			if s.MeanKL > *s.MeanKLOfPeer {
				t.Errorf("mean KL %.6f exceeds llama.cpp's %.6f", s.MeanKL, *s.MeanKLOfPeer)
			}
		})
	}
}

// TestRealModelSameBits computes a prompt with SmolLM2 on every level, in one chunk and in chunks of 7, on 1 to 3
// threads, in blocks of 8 to 32 tokens: the logits of every position are the same bits.
func TestRealModelSameBits(t *testing.T) {
	if testing.Short() {
		t.Skip("a real model on the generic level")
	}
	path := testmodel.Path(t, smolLM2)
	ids := randomIDs(18) // crosses a block border of each size but 32
	var want [][]float32
	for _, c := range []struct {
		setup
		chunk int
	}{
		{setup{threads: 2}, 64},
		{setup{level: fastest()}, 64},
		{setup{level: fastest(), threads: 3, blockSize: 8}, 7},
		{setup{level: fastest(), threads: 2, blockSize: 32}, 1},
		{setup{level: cpu.Levels()[len(cpu.Levels())/2], threads: 2}, 16},
	} {
		got := newMachine(t, open(t, path), c.setup).run(t, ids, c.chunk)
		if want == nil {
			want = got
		}
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%v, chunks of %d: logits of position %d differ from the generic level's", c.setup, c.chunk, i)
				break
			}
		}
	}
}
