package sched_test

import (
	"fmt"
	"testing"

	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// decoding returns a scheduler in steady decode: running requests of 64 prompt tokens each, and waiting ones behind.
func decoding(tb testing.TB, running, waiting, blocks int, groups ...kv.Group) *sched.Scheduler {
	tb.Helper()
	cfg := sched.Config{
		Blocks: blocks, BlockSize: 16, MaxNumSeqs: running, MaxNumBatchedTokens: 64 * running, MaxModelLen: 1 << 20, Groups: groups,
	}
	s := sched.New(cfg)
	for i := range running + waiting {
		id := fmt.Sprintf("r%05d", i)
		s.Apply(sched.AddRequest{Request: &sched.Request{ID: sched.RequestID(id), Prompt: ids(id, 64), IgnoreEOS: true}})
	}
	ev := sched.StepDone{}
	for range 3 {
		turn(s, &ev)
	}
	if st := s.Stats(); st.Running != running || st.Waiting != waiting {
		tb.Fatalf("%d running, %d waiting; want %d and %d", st.Running, st.Waiting, running, waiting)
	}
	return s
}

// turn is one step: plan, sample, return.
func turn(s *sched.Scheduler, ev *sched.StepDone) {
	p := s.Schedule(0)
	ev.Step = p.Step
	ev.Outputs = ev.Outputs[:0]
	for i := range p.Requests {
		r := &p.Requests[i]
		out := sched.StepOutput{ID: r.ID}
		if r.Sample {
			out.Tokens = one[:]
		}
		ev.Outputs = append(ev.Outputs, out)
	}
	s.Apply(ev)
}

var one = [1]int32{7}

// BenchmarkDecodeStep stands for a server in steady decode: one token a request and step, a block for each every 16
// steps. vLLM's Python takes 243 µs at 16 requests, 800 at 64, 3,300 at 256 and 18,000 at 1,024 (CPU time, p10).
func BenchmarkDecodeStep(b *testing.B) {
	for _, running := range []int{16, 64, 256, 1024, 4096} {
		for _, waiting := range []int{0, 10000} {
			b.Run(fmt.Sprintf("running=%d/waiting=%d", running, waiting), func(b *testing.B) {
				s := decoding(b, running, waiting, running*2000)
				ev := sched.StepDone{}
				turn(s, &ev)
				b.ReportAllocs()
				steps := 0
				for b.Loop() {
					if steps++; steps > 20000 {
						b.StopTimer()
						s, steps = decoding(b, running, waiting, running*2000), 0
						b.StartTimer()
					}
					turn(s, &ev)
				}
			})
		}
	}
}

// TestStepAllocatesNothing holds the steady state to zero allocations: plans, changes and tables are used again, and the
// growth of a request's token list is amortised below one allocation a step.
func TestStepAllocatesNothing(t *testing.T) {
	if invariant.Enabled {
		t.Skip("audits allocate")
	}
	for _, groups := range [][]kv.Group{nil, {{}, {Window: 40}, {Window: 40}}} {
		s := decoding(t, 64, 1000, 64*40*max(1, len(groups)), groups...)
		ev := sched.StepDone{}
		turn(s, &ev)
		if n := testing.AllocsPerRun(300, func() { turn(s, &ev) }); n != 0 {
			t.Errorf("a decode step of 64 requests in groups %v allocates %v times; want 0", groups, n)
		}
	}
}
