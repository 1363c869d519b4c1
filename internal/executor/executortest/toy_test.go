package executortest

import (
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// run computes the plans of requests on a new toy, one step each, and returns the last token.
func run(t *testing.T, prompts map[sched.RequestID][]int32, steps ...sched.Planned) int32 {
	t.Helper()
	toy := New(Options{Blocks: 8, BlockSize: 4})
	p := sample.Default()
	p.Temperature = 0
	for id, prompt := range prompts {
		toy.Begin(id, &p, prompt)
	}
	last := int32(-1)
	for i, s := range steps {
		s.N = len(s.Tokens)
		out, err := toy.Execute(&sched.Plan{Step: uint64(i + 1), Requests: []sched.Planned{s}, TotalTokens: s.N})
		if err != nil || out[0].Err != nil {
			t.Fatalf("step %d: %v, %v", i+1, err, out[0].Err)
		}
		for _, tok := range out[0].Sampled {
			last = tok.ID
		}
	}
	return last
}

// The text depends on the tokens read back through the table, and on nothing else: not on chunks, not on which blocks.
func TestToyReadsThroughTheTable(t *testing.T) {
	a, b := []int32{1, 2, 3, 4, 5, 6}, []int32{9, 8, 7, 6, 5, 6}
	prompts := map[sched.RequestID][]int32{"a": a, "b": b}
	whole := sched.Planned{ID: "a", Kind: sched.KindNew, Tokens: a, Blocks: []kv.BlockID{1, 2}, Sample: true}
	want := run(t, prompts, whole)

	moved := whole
	moved.Blocks = []kv.BlockID{7, 3}
	if got := run(t, prompts, moved); got != want {
		t.Errorf("in other blocks: token %d; want %d", got, want)
	}
	first := sched.Planned{ID: "a", Kind: sched.KindNew, Tokens: a[:3], Blocks: []kv.BlockID{1}}
	rest := sched.Planned{ID: "a", Kind: sched.KindRunning, From: 3, Tokens: a[3:], Blocks: []kv.BlockID{2}, Sample: true}
	if got := run(t, prompts, first, rest); got != want {
		t.Errorf("in two chunks: token %d; want %d", got, want)
	}
	other := sched.Planned{ID: "b", Kind: sched.KindNew, Tokens: b, Blocks: []kv.BlockID{5, 6}, Sample: true}
	wrong := sched.Planned{ID: "a", Kind: sched.KindResumed, From: 4, Tokens: a[4:], Blocks: []kv.BlockID{5, 2}, Sample: true}
	if got := run(t, prompts, other, wrong); got == want {
		t.Errorf("with a block of another request: token %d, as if it were right", got)
	}
}

func TestToyRefusesFaultyPlans(t *testing.T) {
	a := []int32{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		name string
		plan sched.Planned
		want string
	}{
		{"stale", sched.Planned{Kind: sched.KindNew, From: 4, Tokens: a[4:], Blocks: []kv.BlockID{1, 2}, Sample: true}, "never written"},
		{"short", sched.Planned{Kind: sched.KindNew, Tokens: a, Blocks: []kv.BlockID{1}, Sample: true}, "1 blocks"},
		{"null", sched.Planned{Kind: sched.KindNew, Tokens: a, Blocks: []kv.BlockID{0, 2}, Sample: true}, "block 0"},
		{"twice", sched.Planned{Kind: sched.KindNew, Tokens: a, Blocks: []kv.BlockID{1, 1}, Sample: true}, "written twice"},
		{"early", sched.Planned{Kind: sched.KindNew, Tokens: a[:4], Blocks: []kv.BlockID{1}, Sample: true}, "sample true"},
		{"other", sched.Planned{Kind: sched.KindNew, Tokens: []int32{1, 9}, Blocks: []kv.BlockID{1}}, "token 1 is 9, want 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if fault, _ := recover().(string); !strings.Contains(fault, c.want) {
					t.Errorf("panic %q; want one about %q", fault, c.want)
				}
			}()
			c.plan.ID = "a"
			run(t, map[sched.RequestID][]int32{"a": a}, c.plan)
		})
	}
}
