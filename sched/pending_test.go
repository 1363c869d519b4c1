package sched_test

import "testing"

// TestEventsWaitForTheirStep: a block is announced when the step that computes it is done; until then its event is pending.
func TestEventsWaitForTheirStep(t *testing.T) {
	cfg := config(4)
	cfg.KVEvents, cfg.PipelineDepth = true, 2
	y := newToy(t, cfg)
	y.add("a", 17, 1)
	p := y.s.Schedule(0)
	if taken, pending := y.s.AppendEvents(nil), y.s.PendingEvents(); len(taken) != 0 || len(pending) != 1 {
		t.Fatalf("in flight: %d events taken, %d pending", len(taken), len(pending))
	}
	y.retire(p)
	if taken, pending := y.s.AppendEvents(nil), y.s.PendingEvents(); len(taken) != 1 || len(pending) != 0 {
		t.Fatalf("retired: %d events taken, %d pending", len(taken), len(pending))
	}
}
