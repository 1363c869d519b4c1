package sched

import (
	"fmt"

	"github.com/quire-ai/quire/internal/invariant"
)

// audit checks every invariant against first principles, in builds with the tag invariants or race.
func (s *Scheduler) audit() {
	if invariant.Enabled {
		err := s.Audit()
		invariant.Check(err == nil, "%v", err)
	}
}

// Audit walks the whole state and returns the first invariant that does not hold. It is meant for tests.
func (s *Scheduler) Audit() error {
	if s.refs == nil {
		s.refs = make([]int32, s.cfg.Blocks+1)
	}
	clear(s.refs)
	for r := s.allFirst; r != nil; r = r.allNext {
		r.table.AddRefs(s.refs)
		if err := s.auditRequest(r); err != nil {
			return err
		}
	}
	for _, g := range s.fence.groups {
		for _, b := range g.blocks {
			s.refs[b]++
		}
	}
	s.refs[0] = 0
	if err := s.cache.Pool().Audit(s.refs); err != nil {
		return err
	}
	if n := s.waiting.len() + s.deferred.len() + len(s.running) + s.heldFinished(); n != len(s.requests) {
		return fmt.Errorf("invariant 4: %d requests in queues, %d live", n, len(s.requests))
	}
	return nil
}

func (s *Scheduler) heldFinished() int {
	n := 0
	for r := s.allFirst; r != nil; r = r.allNext {
		if r.state.Finished() {
			n++
		}
	}
	return n
}

func (s *Scheduler) auditRequest(r *request) error {
	inRunning := false
	for _, o := range s.running {
		inRunning = inRunning || o == r
	}
	var ok bool
	switch r.state {
	case Running:
		ok = inRunning && r.queue == nil
	case Waiting, Preempted:
		ok = !inRunning && r.queue != nil
	case WaitingForGrammar, WaitingForRemoteKVs:
		ok = !inRunning && r.queue == &s.deferred
	default:
		ok = !inRunning && r.queue == nil
	}
	if !ok {
		return fmt.Errorf("invariant 4: request %s is %v but not in exactly the queue of that state", r.ID, r.state)
	}
	if r.computed > len(r.tokens)+r.placeholders+len(r.spec)+s.cfg.SpecTokens {
		return fmt.Errorf("invariant 5: request %s computed %d of %d tokens", r.ID, r.computed, len(r.tokens))
	}
	if have := r.table.Len(0) * s.cfg.BlockSize; !r.state.Finished() && have < r.computed {
		return fmt.Errorf("invariant 5: request %s has %d slots for %d computed tokens", r.ID, have, r.computed)
	}
	return nil
}

// checkProgress is invariant 7: a plan is never empty while a request could run and nothing is in flight.
func (s *Scheduler) checkProgress() {
	if !s.plan.Idle() || len(s.inFlight) > 0 || s.pause != Unpaused || s.short {
		return
	}
	if s.awaitsOutside() || s.askedToWait || len(s.failedGrammar) > 0 {
		return // a completion or an answer will come, and may free what the others wait for
	}
	for r := s.allFirst; r != nil; r = r.allNext {
		invariant.Check(r.state.Finished() || r.deferred, "invariant 7: nothing runs and nothing is in flight, but %s is %v", r.ID, r.state)
	}
}
