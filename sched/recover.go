package sched

import "fmt"

// The recovery pass makes progress where the ordinary passes, whose order of work is upstream's, would wait for ever:
// a finished load behind a head that cannot fit because of the blocks the load holds (vLLM #45406, #57841), a request
// held back by its own claim on free blocks. It runs only when nothing else can happen, so that in every other state
// the decisions are upstream's.

// stuck tells whether the plan is empty, nothing runs, somebody waits, and no event can still come from outside.
func (s *Scheduler) stuck() bool {
	return s.plan.Idle() && len(s.plan.Loads) == 0 && len(s.running) == 0 && s.pause == Unpaused &&
		s.waiting.len()+s.deferred.len() > 0 && !s.short && !s.askedToWait && !s.awaitsOutside()
}

// awaitsOutside tells whether an event that can free blocks or unpark a request is still to come.
func (s *Scheduler) awaitsOutside() bool {
	if len(s.inFlight) > 0 || len(s.fence.groups) > 0 {
		return true
	}
	for r := s.allFirst; r != nil; r = r.allNext {
		if r.load.inFlight() || r.sending || r.state == WaitingForGrammar && r.grammar == grammarPending {
			return true
		}
	}
	return false
}

// recover admits somebody: holders of blocks first, the most urgent of them first. If none fits, the least urgent
// holder gives its blocks up, and so on; then the others are tried in order. A head that does not fit although nobody
// holds anything is failed: it never will.
func (s *Scheduler) recover() {
	s.recovering = true
	defer func() { s.recovering = false }()
	order := s.parked()
	for _, r := range order {
		if r.state == WaitingForRemoteKVs && r.load.done() {
			s.promote(r)
		}
	}
	holders := 0
	for _, r := range order {
		if r.table.Empty() {
			continue
		}
		holders++
		if s.retry(r) {
			return
		}
	}
	for i := len(order) - 1; i >= 0 && holders > 0; i-- {
		if order[i].table.Empty() {
			continue
		}
		s.startOver(order[i], RuleRecovery)
		holders--
		for _, r := range order[:i] {
			if !r.table.Empty() && s.retry(r) {
				return
			}
		}
	}
	for _, r := range order {
		if s.retry(r) {
			return
		}
		if !r.deferred && r.state != WaitingForGrammar && !r.state.Finished() {
			s.finish(r, ending{reason: ReasonError, err: s.neverFits(r)})
			return
		}
	}
}

// parked returns all waiting requests in the order in which they would be considered.
func (s *Scheduler) parked() []*request {
	var order []*request
	for s.waiting.len()+s.deferred.len() > 0 {
		q := s.nextQueue()
		r := q.head()
		q.remove(r)
		order = append(order, r)
		r.fromDeferred = q == &s.deferred
	}
	for _, r := range order {
		if r.fromDeferred {
			s.deferred.pushBack(r)
		} else {
			s.waiting.pushBack(r)
		}
	}
	return order
}

// retry considers r out of turn and tells whether that got it running or loading.
func (s *Scheduler) retry(r *request) bool {
	seats := s.budget > 0 && len(s.running) < s.cfg.MaxNumSeqs
	if !seats || r.state == WaitingForGrammar || r.state.Finished() {
		return false
	}
	before := r.state
	v := s.consider(r)
	if v == stopPass || v == turnedAway || v == passOver && r.state == before {
		return false
	}
	r.queue.remove(r)
	if v == passOver {
		s.deferred.pushFront(r)
	}
	s.byRule(RuleRecovery, r, "admitted out of turn")
	return true
}

// startOver takes the blocks of a parked request whose load is done. It waits as one that was never looked up.
func (s *Scheduler) startOver(r *request, rule Rule) {
	s.byRule(rule, r, "gives up what it loaded")
	r.epoch++
	s.release(r)
	r.computed, r.load, r.prefilling = 0, loadNone, false
}

// reclaim serves r, a lone running request that runs out of blocks because of parked requests that hold some, with their
// loads done. The first time it preempts itself, as upstream does, and the parked ones may go first. If it then runs into
// their blocks again, it would do so for ever: now the least urgent of them gives its blocks up.
func (s *Scheduler) reclaim(r *request) bool {
	if len(s.running) > 1 || s.cfg.TestOnlyFault == FaultNoReclaim {
		return false
	}
	var least *request
	for o := range s.deferred.all {
		if !o.table.Empty() && (least == nil || s.cfg.Policy == FCFS || least.before(o)) {
			least = o
		}
	}
	if least == nil {
		return false
	}
	again := r.yielded
	r.yielded = true
	if !again || s.awaitsOutside() {
		return false
	}
	if least.state == WaitingForRemoteKVs {
		s.promote(least)
	}
	s.startOver(least, RuleReclaim)
	return true
}

// neverFits says why r cannot be admitted although the cache is empty.
func (s *Scheduler) neverFits(r *request) error {
	return fmt.Errorf("%d known tokens cannot be admitted to the empty cache of %d tokens", len(r.tokens), s.poolMax)
}
