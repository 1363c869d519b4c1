package sched_test

import (
	"testing"

	"github.com/quire-ai/quire/sched"
)

// hesitant is a store that never knows yet, and counts how often it was asked.
type hesitant struct{ asked int }

func (h *hesitant) Match(sched.MatchQuery) sched.Match {
	h.asked++
	return sched.Match{Deferred: true}
}

func (h *hesitant) Finished(sched.RequestID, sched.Epoch, sched.Reason) bool { return false }

// TestAskLaterIsAskedOnceAStep: the answer that is still to come counts as an event from outside, so the recovery pass
// does not ask the connector a second time in the same step.
func TestAskLaterIsAskedOnceAStep(t *testing.T) {
	cfg, store := config(4), &hesitant{}
	cfg.Connector = store
	y := newToy(t, cfg)
	y.add("a", 16, 1)
	for n := 1; n <= 3; n++ {
		if y.step() || store.asked != n {
			t.Fatalf("asked %d times in %d steps", store.asked, n)
		}
	}
}
