package sched_test

import (
	"testing"

	"github.com/quire-ai/quire/sched"
)

// toy drives a scheduler with a model whose k-th output is 100+k.
type toy struct {
	t    *testing.T
	s    *sched.Scheduler
	text map[sched.RequestID][]int32
	end  map[sched.RequestID]sched.Reason
	done []sched.RequestID // in order of completion

	preempted map[sched.RequestID]int
	refused   map[sched.RequestID]string
}

func newToy(t *testing.T, cfg sched.Config) *toy {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return &toy{
		t: t, s: sched.New(cfg), text: map[sched.RequestID][]int32{}, end: map[sched.RequestID]sched.Reason{},
		preempted: map[sched.RequestID]int{}, refused: map[sched.RequestID]string{},
	}
}

func (y *toy) add(id string, prompt, out int) {
	y.apply(sched.AddRequest{Request: &sched.Request{ID: sched.RequestID(id), Prompt: ids(id, prompt), MaxTokens: out}})
}

// ids returns n token ids that no other id shares a block of.
func ids(id string, n int) []int32 {
	seed := int32(0)
	for _, c := range id {
		seed = seed*31 + c
	}
	p := make([]int32, n)
	for i := range p {
		p[i] = 1000 + (seed*7919+int32(i)*13)&0x3fff
	}
	return p
}

func (y *toy) apply(ev sched.Event) {
	for _, c := range y.s.Apply(ev) {
		switch c.Kind {
		case sched.Emitted:
			if c.Position != len(y.text[c.ID]) {
				y.t.Fatalf("%s: token at %d, want %d", c.ID, c.Position, len(y.text[c.ID]))
			}
			y.text[c.ID] = append(y.text[c.ID], c.Token)
		case sched.Finished:
			if y.end[c.ID] != 0 {
				y.t.Fatalf("%s finished twice", c.ID)
			}
			y.end[c.ID] = c.Reason
			y.done = append(y.done, c.ID)
			y.preempted[c.ID] = c.Preemptions
		case sched.Refused:
			y.refused[c.ID] = c.Err.Error()
		}
	}
}

// step makes one plan and returns its outputs, and tells whether it computed anything.
func (y *toy) step() bool {
	p := y.s.Schedule(0)
	if err := y.s.Audit(); err != nil {
		y.t.Fatal(err)
	}
	idle := p.Idle()
	y.retire(p)
	return !idle
}

// retire returns a plan's outputs.
func (y *toy) retire(p *sched.Plan) {
	ev := sched.StepDone{Step: p.Step}
	for i := range p.Requests {
		if r := &p.Requests[i]; r.Sample {
			ev.Outputs = append(ev.Outputs, sched.StepOutput{ID: r.ID, Tokens: []int32{int32(100 + r.Outputs)}})
		}
	}
	y.apply(&ev)
	if err := y.s.Audit(); err != nil {
		y.t.Fatal(err)
	}
}

// drain steps until nothing is left and checks that the pool is whole.
func (y *toy) drain(most int) int {
	n := 0
	for y.step() {
		if n++; n > most {
			y.t.Fatalf("not drained after %d steps", most)
		}
	}
	st := y.s.Stats()
	if st.Running != 0 || st.Waiting != 0 || st.Deferred != 0 || st.FreeBlocks != st.UsableBlocks {
		y.t.Fatalf("after the drain: %+v", st)
	}
	return n
}

func config(blocks int) sched.Config {
	return sched.Config{Blocks: blocks, BlockSize: 16, MaxNumSeqs: 32, MaxNumBatchedTokens: 512, MaxModelLen: 8192}
}
