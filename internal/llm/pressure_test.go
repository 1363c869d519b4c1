package llm_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/internal/testmodel"
	"github.com/quire-ai/quire/internal/tokenizer"
)

// TestPressureRealModel: sixteen requests on a KV cache of 512 tokens, some of them sampled, have the tokens and log
// probabilities they have alone, bit for bit, whatever the block size, the step budget, the cache and the kernels.
func TestPressureRealModel(t *testing.T) {
	if testing.Short() {
		t.Skip("computes some thousands of tokens of a real model")
	}
	path := testmodel.Path(t, "SmolLM2-135M-Instruct.Q4_1.gguf")
	var want []reply
	for i, c := range []struct {
		kv, block, budget int
		noCache, alone    bool
		cpu               string
	}{
		{kv: 1 << 14, block: 16, budget: 2048, noCache: true, alone: true},
		{kv: 512, block: 16, budget: 512},
		{kv: 512, block: 32, budget: 64, noCache: true},
		{kv: 512, block: 8, budget: 4096, cpu: "avx2"},
	} {
		t.Run(fmt.Sprintf("kv=%d/block=%d/budget=%d/cache=%t/%s", c.kv, c.block, c.budget, !c.noCache, c.cpu), func(t *testing.T) {
			o := llm.Options{Model: path, KVCacheTokens: c.kv, CPU: c.cpu, Threads: 1}
			s := &o.Engine.Sched
			s.BlockSize, s.MaxNumBatchedTokens, s.NoPrefixCaching, s.Watermark = c.block, c.budget, c.noCache, llm.DefaultWatermark
			m, err := llm.Load(t.Context(), o)
			if err != nil {
				t.Skip(err) // a level this machine lacks
			}
			defer m.Close()
			start := time.Now()
			got := ask(t, m, c.alone)
			n := m.Engine.Snapshot()
			t.Logf("%d tokens computed in %v, %d steps, %d preemptions, %d recomputed", n.ComputedTokens, time.Since(start).Round(time.Millisecond),
				n.Step, n.Preemptions, n.RecomputedTokens)
			if i == 0 {
				want = got
				return
			}
			for i := range got {
				if !slices.EqualFunc(got[i].tokens, want[i].tokens, sameToken) {
					t.Errorf("request %d differs from its answer alone", i)
				}
			}
			if n := m.Engine.Snapshot(); n.Live != 0 || n.FreeBlocks != n.UsableBlocks {
				t.Errorf("%d live, %d of %d blocks free", n.Live, n.FreeBlocks, n.UsableBlocks)
			}
		})
	}
}

type reply struct {
	tokens []engine.Token
	err    error
}

func sameToken(a, b engine.Token) bool {
	return a.ID == b.ID && a.Logprob == b.Logprob && a.Rank == b.Rank
}

// ask sends requests of different lengths, one after another or all at once.
func ask(t *testing.T, m *llm.Model, alone bool) []reply {
	t.Helper()
	answers := make([]reply, 16)
	var clients sync.WaitGroup
	for i := range answers {
		params := sample.Default()
		params.Temperature, params.Logprobs, params.Seed = 0, 0, uint64(i)
		if i%3 == 0 {
			params.Temperature, params.TopP, params.RepetitionPenalty = 0.9, 0.95, 1.1
		}
		text := strings.Repeat(fmt.Sprintf("Story %d of the old mill by the river. ", i), 3+i*7%11)
		h, err := m.Engine.Submit(t.Context(), &engine.Request{
			Prompt: m.Tokenizer.Encode(text, tokenizer.Options{AddSpecial: true}), MaxTokens: 16, IgnoreEOS: true,
			Sampling: params,
		})
		if err != nil {
			t.Fatal(err)
		}
		read := func() {
			for {
				tok, err := h.Next(t.Context())
				if err != nil {
					if !errors.Is(err, io.EOF) {
						answers[i].err = err
					}
					return
				}
				answers[i].tokens = append(answers[i].tokens, tok)
			}
		}
		if alone {
			read()
		} else {
			clients.Go(read)
		}
	}
	clients.Wait()
	for i, a := range answers {
		if a.err != nil || len(a.tokens) != 16 {
			t.Errorf("request %d: %d tokens, %v; want 16", i, len(a.tokens), a.err)
		}
	}
	return answers
}
