package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/sched"
)

var soakSeed = flag.Uint64("soak.seed", 0, "run TestSoak with this seed only")

// TestSoak throws random requests, priorities, slow and vanishing readers, failing rows and steps and resets of the prefix cache
// at engines of random shape. Whatever ends well has the text it has alone, counters only grow, and nothing is left behind.
func TestSoak(t *testing.T) {
	seeds := each(12, func(i int) uint64 { return uint64(i + 1) })
	if testing.Short() {
		seeds = seeds[:3]
	}
	if *soakSeed != 0 {
		seeds = []uint64{*soakSeed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { soak(t, rand.New(rand.NewPCG(seed, 0))) })
			if t.Failed() {
				t.Logf("go test -run TestSoak ./internal/engine -args -soak.seed=%d", seed)
			}
		})
	}
}

func soak(t *testing.T, rng *rand.Rand) {
	s := shape{
		blocks: 8 + rng.IntN(40), blockSize: []int{8, 16, 32}[rng.IntN(3)], seqs: 1 + rng.IntN(12), budget: 8 + rng.IntN(200),
		noCache: rng.IntN(3) == 0, policy: sched.Policy(rng.IntN(2)),
	}
	faults := rand.New(rand.NewPCG(rng.Uint64(), 1)) // of the loop alone
	s.toy.Step = func(*sched.Plan) error {
		time.Sleep(time.Millisecond)
		if faults.IntN(150) == 0 {
			return errors.New("the step fails")
		}
		return nil
	}
	s.toy.Row = func(*sched.Planned) error {
		if faults.IntN(400) == 0 {
			return errors.New("the row fails")
		}
		return nil
	}
	e, toy := newEngine(s)
	defer e.Close()
	stop := make(chan struct{})
	go watchCounters(t, e, stop)
	var clients sync.WaitGroup
	for i := range 60 {
		r := randomRequest(rng, s.blocks*s.blockSize)
		patience := time.Duration(rng.IntN(2000)) * time.Millisecond
		slow := time.Duration(rng.IntN(3)) * time.Millisecond
		clients.Go(func() { client(t, e, r, i, patience, slow) })
		time.Sleep(time.Duration(rng.IntN(6)) * time.Millisecond)
		if rng.IntN(20) == 0 {
			_ = e.ResetPrefixCache(t.Context(), true) // refused while loads are on their way; either is fine
		}
	}
	clients.Wait()
	close(stop)
	time.Sleep(10 * time.Millisecond) // the step under way when the last one left
	if s := e.Snapshot(); s.Live != 0 || s.FreeBlocks != s.UsableBlocks || toy.Remembered() != 0 {
		t.Errorf("left behind: %d live, %d of %d blocks free, %d remembered", s.Live, s.FreeBlocks, s.UsableBlocks, toy.Remembered())
	}
	if h := e.Health(); h.Status != engine.OK && h.Status != engine.Failing {
		t.Errorf("health %+v", h)
	}
}

func randomRequest(rng *rand.Rand, room int) *engine.Request {
	p := sample.Default()
	p.Seed = rng.Uint64()
	if rng.IntN(2) == 0 {
		p.Temperature = 0
	}
	if rng.IntN(3) == 0 {
		p.TopP, p.RepetitionPenalty = 0.9, 1.2
	}
	text := slices.Concat(prompt(rng.IntN(4), rng.IntN(64)), prompt(rng.IntN(100), 1+rng.IntN(room/2)))
	return &engine.Request{Prompt: text, MaxTokens: 1 + rng.IntN(60), Priority: rng.IntN(3), Sampling: p}
}

// client reads a request as slowly as it likes, leaves when it has lost patience, and compares what it got.
func client(t *testing.T, e *engine.Engine, r *engine.Request, i int, patience, slow time.Duration) {
	ctx, leave := context.WithTimeout(t.Context(), patience)
	defer leave()
	h, err := e.Submit(ctx, r)
	if _, ok := errors.AsType[*engine.TooLongError](err); ok {
		return
	} else if err != nil {
		t.Errorf("request %d: %v", i, err)
		return
	}
	var got []int32
	for tok, err := range h.All(ctx) {
		if err != nil {
			break
		}
		got = append(got, tok.ID)
		time.Sleep(slow)
	}
	want := alone(r, executortest.Options{})
	if len(got) > len(want.tokens) || !slices.Equal(got, want.tokens[:len(got)]) {
		t.Errorf("request %d: %v; alone %v", i, got, want.tokens)
	}
	if f := h.Finish(); f.Reason == sched.ReasonStop || f.Reason == sched.ReasonLength && len(got) < min(len(want.tokens), 1) {
		t.Errorf("request %d ended by %v with %d tokens of %d", i, f.Reason, len(got), r.MaxTokens)
	}
}

// watchCounters fails when a counter falls (LMCache #2912: a negative step of a counter crashed its metrics).
func watchCounters(t *testing.T, e *engine.Engine, stop <-chan struct{}) {
	last := e.Snapshot()
	for {
		select {
		case <-stop:
			return
		case <-time.After(3 * time.Millisecond):
		}
		s := e.Snapshot()
		for _, c := range [][2]uint64{
			{last.ScheduledTokens, s.ScheduledTokens},
			{last.ComputedTokens, s.ComputedTokens},
			{last.GeneratedTokens, s.GeneratedTokens},
			{last.RecomputedTokens, s.RecomputedTokens},
			{last.Preemptions, s.Preemptions},
			{last.Prefix.Queried, s.Prefix.Queried},
			{last.Prefix.Hit, s.Prefix.Hit},
		} {
			if c[1] < c[0] {
				t.Errorf("a counter fell from %d to %d", c[0], c[1])
			}
		}
		if s.Prefix.Hit > s.Prefix.Queried {
			t.Errorf("%d prefix hits of %d queried", s.Prefix.Hit, s.Prefix.Queried)
		}
		last = s
	}
}
