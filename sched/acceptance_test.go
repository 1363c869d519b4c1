package sched_test

import (
	"fmt"
	"testing"

	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/sched"
)

// shape is one acceptance case: 30 clients at once, or fewer, on a cache of exactly 4,096 tokens.
type shape struct {
	name           string
	requests       int
	prompt         func(i int) int
	out            int
	shared         int // leading prompt tokens that all have in common
	mostPreempted  int // preemptions in all: what plain FCFS with blocks of 32 needs
	mostRecomputed int // tokens: twice what plain FCFS without prefix cache and watermark recomputes
	fullLength     bool
}

func constant(n int) func(int) int { return func(int) int { return n } }

func shapes() []shape {
	mixed := func(i int) int { return 64 + 331*i%960 }
	return []shape{
		{name: "C1", requests: 30, prompt: constant(512), out: 256, mostPreempted: 14, mostRecomputed: 16222, fullLength: true},
		{name: "C2", requests: 30, prompt: constant(150), out: 256, mostPreempted: 28, mostRecomputed: 12366, fullLength: true},
		{name: "C4", requests: 30, prompt: mixed, out: 256, mostPreempted: 11, mostRecomputed: 16524, fullLength: true},
		{name: "C6", requests: 2, prompt: constant(2500), out: 1000, fullLength: true},
		{name: "C7", requests: 1, prompt: constant(4000), out: 500},
		{name: "C10", requests: 30, prompt: constant(512), out: 256, shared: 256, mostPreempted: 14, mostRecomputed: 16222, fullLength: true},
	}
}

// TestAcceptanceShapes runs the cases with block sizes 16 and 32, budgets 512 and 4,096, prefix cache on and off, each
// in two waves on one scheduler: everybody gets every token, in order of arrival for equal shapes, within the reference's
// preemptions, and everything is back where it was.
func TestAcceptanceShapes(t *testing.T) {
	for _, c := range shapes() {
		for _, blockSize := range []int{16, 32} {
			for _, budget := range []int{512, 4096} {
				for _, noCache := range []bool{false, true} {
					if invariant.Enabled && (blockSize == 16 || budget == 512) {
						continue // an audit after each step makes it long
					}
					t.Run(fmt.Sprintf("%s/block=%d/budget=%d/cache=%t", c.name, blockSize, budget, !noCache), func(t *testing.T) {
						y := newToy(t, sched.Config{
							Blocks: 4096 / blockSize, BlockSize: blockSize, MaxNumSeqs: 32,
							MaxNumBatchedTokens: budget, MaxModelLen: 8192, NoPrefixCaching: noCache,
							Watermark: 1.0 / 16, // what quire serve sets, docs/decisions/0070-watermark.md
						})
						for wave := range 2 {
							runShape(t, y, c, wave)
						}
					})
				}
			}
		}
	}
}

func runShape(t *testing.T, y *toy, c shape, wave int) {
	t.Helper()
	before := y.s.Stats()
	y.done = y.done[:0]
	var order []sched.RequestID
	equalShapes := true
	for i := range c.requests {
		id := fmt.Sprintf("%d-%02d", wave, i)
		prompt := append(ids("shared", c.shared), ids(id, c.prompt(i)-c.shared)...)
		y.apply(sched.AddRequest{Request: &sched.Request{ID: sched.RequestID(id), Prompt: prompt, MaxTokens: c.out}})
		order = append(order, sched.RequestID(id))
		equalShapes = equalShapes && c.prompt(i) == c.prompt(0)
	}
	steps := y.drain(20000)
	after := y.s.Stats()
	preemptions := int(after.Preemptions - before.Preemptions)
	recomputed := int(after.RecomputedTokens - before.RecomputedTokens)
	for i, id := range order {
		want := c.out
		if !c.fullLength {
			want = 4096 - c.prompt(i) + 1
		}
		if len(y.text[id]) != want || y.end[id] != sched.ReasonLength {
			t.Errorf("%s: %d tokens, %v; want %d, length", id, len(y.text[id]), y.end[id], want)
		}
		if equalShapes && y.done[i] != id {
			t.Errorf("completion %d is %s; want %s: equal shapes complete in order of arrival", i, y.done[i], id)
		}
		if y.preempted[id] > 4 {
			t.Errorf("%s was preempted %d times; want at most 4", id, y.preempted[id])
		}
	}
	if preemptions > c.mostPreempted {
		t.Errorf("%d preemptions; the reference needs at most %d", preemptions, c.mostPreempted)
	}
	if recomputed > c.mostRecomputed {
		t.Errorf("%d tokens recomputed; at most %d are allowed", recomputed, c.mostRecomputed)
	}
	t.Logf("wave %d: %d steps, %d preemptions, %d tokens recomputed", wave, steps, preemptions, recomputed)
}

// TestImpossibleAmongNormal is C8: one prompt of 5,000 tokens among 29 normal ones is refused with both numbers, before
// any step; the others are unaffected.
func TestImpossibleAmongNormal(t *testing.T) {
	y := newToy(t, config(256))
	for i := range 30 {
		n := 512
		if i == 13 {
			n = 5000
		}
		y.add(fmt.Sprintf("r%02d", i), n, 256)
	}
	if got, want := y.refused["r13"], "prompt of 5000 tokens exceeds the KV cache of 4096"; got != want {
		t.Errorf("refusal %q; want %q", got, want)
	}
	y.drain(10000)
	if len(y.done) != 29 {
		t.Errorf("%d requests finished; want 29", len(y.done))
	}
}
