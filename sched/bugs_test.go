package sched_test

import (
	"fmt"
	"testing"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// counting is a connector that is asked and says "later" until it is open.
type counting struct {
	noStore
	asked map[sched.RequestID]int
	open  bool
}

func (c *counting) Match(q sched.MatchQuery) sched.Match {
	c.asked[q.Request.ID]++
	return sched.Match{Deferred: !c.open}
}

// mistral.rs #2324: a request that was turned away went back to the queue that was being worked off, and the pass never ended.
// Here a pass looks at each request once, however many are turned away.
func TestPassLooksOnceAtEach2324(t *testing.T) {
	for _, policy := range []sched.Policy{sched.FCFS, sched.Priority} {
		store := &counting{asked: map[sched.RequestID]int{}}
		cfg := config(64)
		cfg.Policy, cfg.Connector = policy, store
		y := newToy(t, cfg)
		const requests = 50
		for i := range requests {
			y.add(fmt.Sprintf("r%02d", i), 20, 2)
		}
		for range 3 {
			clear(store.asked)
			if y.step() {
				t.Fatal("a step computed something, though the store said later to everybody")
			}
			for id, n := range store.asked {
				if n != 1 {
					t.Errorf("%v: %s was looked at %d times in one pass", policy, id, n)
				}
			}
			if len(store.asked) != requests {
				t.Errorf("%v: %d of %d requests were looked at", policy, len(store.asked), requests)
			}
		}
		store.open = true
		y.drain(100)
		if len(y.done) != requests {
			t.Errorf("%v: %d of %d requests ended", policy, len(y.done), requests)
		}
	}
}

// am17an/llama.cpp #20: with speculation on, a cancelled request kept its slot, and every later one was cancelled. Here a
// request leaves between draft and verification, while the drafts are verified, and by itself in the midst of accepted ones.
func TestCancelBetweenDraftAndVerify20(t *testing.T) {
	s := sched.New(sched.Config{
		Blocks: 8, BlockSize: 4, MaxNumSeqs: 1, MaxNumBatchedTokens: 16, MaxModelLen: 64, SpecTokens: 3,
	})
	drafts := []int32{11, 12, 13}
	add := func(id sched.RequestID, most int) {
		s.Apply(sched.AddRequest{Request: &sched.Request{ID: id, Prompt: ids(string(id), 5), MaxTokens: most}})
	}
	step := func(id sched.RequestID, wantDrafts int, sampled ...int32) {
		t.Helper()
		p := s.Schedule(0)
		if len(p.Requests) != 1 || p.Requests[0].ID != id || len(p.Requests[0].Drafts) != wantDrafts {
			t.Fatalf("plan %+v; want %s with %d drafts", p.Requests, id, wantDrafts)
		}
		if len(sampled) == 0 { // it leaves while the step runs, and the step's tokens come after it
			s.Apply(sched.Abort{ID: id})
			sampled = drafts
		}
		s.Apply(&sched.StepDone{Step: p.Step, Outputs: []sched.StepOutput{{ID: id, Tokens: sampled, Drafts: drafts}}})
	}
	whole := func(when string) {
		t.Helper()
		if st := s.Stats(); st.FreeBlocks != 8 || st.Running+st.Waiting+st.Deferred > 0 {
			t.Errorf("%s: %d of 8 blocks free, %d running", when, st.FreeBlocks, st.Running)
		}
		if err := s.Audit(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	for range 3 {
		add("a", 20)
		step("a", 0, 10)
		s.Apply(sched.Abort{ID: "a"}) // the drafts wait for the next step
		whole("cancelled between draft and verification")
		add("b", 20)
		step("b", 0, 10)
		step("b", 3)
		whole("cancelled while the drafts are verified")
		add("c", 3)
		step("c", 0, 10)
		step("c", 3, 11, 12, 13, 14) // all accepted, two of them too many
		whole("ended among the accepted drafts")
	}
}

// TensorRT-LLM #3857: the engine hung when events were on and nobody took them fast enough. The core's events are values: they
// hold nobody up, and what nobody takes is given up beyond a bound, with a mark that says so.
func TestEventsNobodyTakes3857(t *testing.T) {
	for _, depth := range []int{1, 2} {
		cfg := sched.Config{
			Blocks: 512, BlockSize: 1, MaxNumSeqs: 4, MaxNumBatchedTokens: 512, MaxModelLen: 600, KVEvents: true, PipelineDepth: depth,
		}
		y := newToy(t, cfg)
		const bound = 1<<14 + 3*512 // and what the last steps recorded
		for i := range 100 {
			y.add(fmt.Sprint("r", i), 500, 2)
			y.drain(10)
		}
		events := y.s.AppendEvents(nil)
		if len(events) > bound || len(events) == 0 {
			t.Fatalf("depth %d: %d events were kept; want at most %d", depth, len(events), bound)
		}
		if events[0].Kind != kv.AllBlocksCleared {
			t.Errorf("depth %d: the first of the events that were kept is %v; want the mark that some are missing", depth, events[0])
		}
		// A consumer that starts from the mark knows of no block that is not there.
		known := map[kv.Hash]int{}
		for _, e := range events {
			for _, h := range e.Hashes {
				switch {
				case e.Kind == kv.BlockStored:
					known[h]++
				case known[h] > 0:
					known[h]--
				}
			}
		}
		cached := map[kv.Hash]int{}
		for b := 1; b <= 512; b++ {
			if h, ok := y.s.Pool().Hash(kv.BlockID(b)); ok {
				cached[h]++
			}
		}
		for h, n := range known {
			if n > cached[h] {
				t.Fatalf("depth %d: block %v is known %d times and cached %d times", depth, h, n, cached[h])
			}
		}
	}
}
