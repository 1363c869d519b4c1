package engine_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/sched"
)

// shape is the size of an engine under test; zero fields take the defaults of newEngine.
type shape struct {
	blocks, blockSize, seqs, budget, modelLen int
	noCache                                   bool
	policy                                    sched.Policy
	toy                                       executortest.Options
	config                                    func(*engine.Config)
}

// newEngine starts an engine over a toy. The caller closes it.
func newEngine(s shape) (*engine.Engine, *executortest.Toy) {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&s.blocks, 64)
	set(&s.blockSize, 16)
	set(&s.seqs, 32)
	set(&s.budget, 512)
	set(&s.modelLen, 8192)
	s.toy.Blocks, s.toy.BlockSize = s.blocks, s.blockSize
	toy := executortest.New(s.toy)
	cfg := engine.Config{
		Sched: sched.Config{
			Blocks: s.blocks, BlockSize: s.blockSize, MaxNumSeqs: s.seqs, MaxNumBatchedTokens: s.budget,
			MaxModelLen: s.modelLen, Watermark: 1.0 / 16, NoPrefixCaching: s.noCache, Policy: s.policy,
		},
		Vocab: toy.Vocab(), LogInterval: -1,
	}
	if s.config != nil {
		s.config(&cfg)
	}
	return engine.New(cfg, toy), toy
}

// prompt returns n tokens that depend on the seed from the first on.
func prompt(seed, n int) []int32 {
	p := make([]int32, n)
	x := uint32(seed)*2654435761 + 12345
	for i := range p {
		x = x*1664525 + 1013904223
		p[i] = int32(x >> 26) // the toy has 64 tokens
	}
	return p
}

// greedy is a request for exactly n tokens.
func greedy(p []int32, n int) *engine.Request {
	params := sample.Default()
	params.Temperature = 0
	return &engine.Request{Prompt: p, MaxTokens: n, Sampling: params}
}

// result is all a client gets.
type result struct {
	tokens []int32
	finish engine.Finish
	err    error
}

// serve submits a request and reads it to the end.
func serve(ctx context.Context, e *engine.Engine, r *engine.Request) result {
	h, err := e.Submit(ctx, r)
	if err != nil {
		return result{err: err}
	}
	return read(ctx, h)
}

func read(ctx context.Context, h *engine.Handle) (res result) {
	for {
		tok, err := h.Next(ctx)
		if errors.Is(err, io.EOF) {
			res.finish = h.Finish()
			return res
		}
		if err != nil {
			res.err = err
			return res
		}
		res.tokens = append(res.tokens, tok.ID)
	}
}

// serveAll submits the requests in order and reads each in a goroutine of its own.
func serveAll(ctx context.Context, e *engine.Engine, requests []*engine.Request) []result {
	results := make([]result, len(requests))
	var wg sync.WaitGroup
	for i, r := range requests {
		h, err := e.Submit(ctx, r)
		if err != nil {
			results[i] = result{err: err}
			continue
		}
		wg.Go(func() { results[i] = read(ctx, h) })
	}
	wg.Wait()
	return results
}

// alone runs a request on an engine of its own with room for everything.
func alone(r *engine.Request, toy executortest.Options) result {
	e, _ := newEngine(shape{blocks: 1024, budget: 1 << 14, noCache: true, toy: toy})
	defer e.Close()
	return serve(context.Background(), e, r)
}

// drained fails unless nothing is left of any request.
func drained(t *testing.T, e *engine.Engine) {
	t.Helper()
	synctest.Wait()
	s := e.Snapshot()
	if s.Live != 0 || s.Running != 0 || s.Waiting != 0 || s.Deferred != 0 || s.FreeBlocks != s.UsableBlocks {
		t.Errorf("not drained: %d live, %d running, %d waiting, %d deferred, %d of %d blocks free",
			s.Live, s.Running, s.Waiting, s.Deferred, s.FreeBlocks, s.UsableBlocks)
	}
	if h := e.Health(); h.Status != engine.OK {
		t.Errorf("health %+v; want ok", h)
	}
}

// wave is the acceptance check of one wave of requests: all end as asked, with the text they have alone.
func wave(t *testing.T, e *engine.Engine, requests []*engine.Request, want []result) {
	t.Helper()
	before := e.Snapshot()
	got := serveAll(t.Context(), e, requests)
	for i := range got {
		if got[i].err != nil {
			t.Fatalf("request %d: %v", i, got[i].err)
		}
		if got[i].finish.Reason != want[i].finish.Reason || !slices.Equal(got[i].tokens, want[i].tokens) {
			t.Fatalf("request %d: %d tokens, %v; alone %d tokens, %v; first difference at %d", i,
				len(got[i].tokens), got[i].finish.Reason, len(want[i].tokens), want[i].finish.Reason, firstDifference(got[i].tokens, want[i].tokens))
		}
		if n := got[i].finish.Preemptions; n > 6 {
			t.Errorf("request %d was preempted %d times; want at most 6", i, n)
		}
	}
	after := e.Snapshot()
	t.Logf("steps %d, preemptions %d, recomputed %d", after.Step-before.Step, after.Preemptions-before.Preemptions,
		after.RecomputedTokens-before.RecomputedTokens)
	drained(t, e)
}

func firstDifference(a, b []int32) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func each[T any](n int, f func(int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}
