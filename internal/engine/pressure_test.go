package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/internal/record"
)

// pressure is one case of the workload that stopped mistral.rs (PR #2043): many clients on a KV cache of exactly 4,096
// tokens.
type pressure struct {
	name        string
	requests    []*engine.Request
	preemptions uint64 // of a plain first-come-first-served scheduler on 127 blocks of 32
	equal       bool   // requests have one shape, so they end in order of arrival
}

func pressures() []pressure {
	shared := prompt(999, 256)
	return []pressure{
		{"C1", each(30, func(i int) *engine.Request { return greedy(prompt(i, 512), 256) }), 14, true},
		{"C2", each(30, func(i int) *engine.Request { return greedy(prompt(i, 150), 256) }), 28, true},
		{"C4", each(30, func(i int) *engine.Request { return greedy(prompt(i, 64+331*i%960), 256) }), 11, false},
		{"C6", each(2, func(i int) *engine.Request { return greedy(prompt(i, 2500), 1000) }), 0, true},
		{"C10", each(30, func(i int) *engine.Request { return greedy(slices.Concat(shared, prompt(i, 256)), 256) }), 14, true},
	}
}

// TestPressure2043: every request ends with the text it has alone, few are preempted and none often, equal ones end in
// order, nothing is left behind, and the record of the run replays; again in a second and a third wave.
func TestPressure2043(t *testing.T) {
	for _, c := range pressures() {
		want := each(len(c.requests), func(i int) result { return alone(c.requests[i], executortest.Options{}) })
		for _, s := range []shape{
			{blocks: 256, blockSize: 16, budget: 512},
			{blocks: 256, blockSize: 16, budget: 512, noCache: true},
			{blocks: 128, blockSize: 32, budget: 512},
			{blocks: 256, blockSize: 16, budget: 4096},
			{blocks: 128, blockSize: 32, budget: 4096, noCache: true},
		} {
			t.Run(fmt.Sprintf("%s/block=%d/budget=%d/cache=%t", c.name, s.blockSize, s.budget, !s.noCache), func(t *testing.T) {
				if (testing.Short() || invariant.Enabled) && (s.budget != 512 || s.noCache) {
					t.Skip("the first shape stands for the others")
				}
				synctest.Test(t, func(t *testing.T) { pressureCase(t, c, s, want) })
			})
		}
	}
}

func pressureCase(t *testing.T, c pressure, s shape, want []result) {
	var order []string
	var written bytes.Buffer
	s.config = func(cfg *engine.Config) {
		cfg.Record = &written
		cfg.Observer.Finished = func(f engine.FinishInfo) { order = append(order, f.ClientID) }
	}
	e, _ := newEngine(s)
	defer e.Close()
	var inOrder []string
	for i, r := range c.requests {
		r.ClientID = fmt.Sprint(i)
		inOrder = append(inOrder, r.ClientID)
	}
	waves := 1
	if s.budget == 512 && s.blockSize == 16 && !s.noCache && !invariant.Enabled { // audits after every step take their time
		waves = 3
	}
	for range waves {
		before := e.Snapshot().Preemptions
		order = nil
		wave(t, e, c.requests, want)
		if n := e.Snapshot().Preemptions - before; n > c.preemptions {
			t.Errorf("%d preemptions; want at most %d", n, c.preemptions)
		}
		if c.equal && !slices.Equal(order, inOrder) {
			t.Errorf("equal requests ended in the order %v", order)
		}
	}
	ran := e.Snapshot().Preemptions
	e.Close()
	replayed, err := record.Replay(&written)
	if err != nil || replayed.Stats.Preemptions != ran || replayed.Requests != waves*len(c.requests) {
		t.Errorf("replay: %+v, %v; want %d requests and %d preemptions", replayed, err, waves*len(c.requests), ran)
	}
}
