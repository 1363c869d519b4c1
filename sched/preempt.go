package sched

import "github.com/quire-ai/quire/kv"

// allocateRunning gives the running request r slots for its next n tokens. Where blocks run out it preempts others, and in
// the end r itself: then it returns false.
//
// A victim whose blocks a step in flight still writes makes no room now, nor would the next one, and one shortage would
// preempt everybody (vLLM #49674). So none is taken while the blocks of an earlier one are still to come back; r waits for
// them. A request that ran into the blocks of parked ones before waits too, for its own step to retire: see reclaim.
func (s *Scheduler) allocateRunning(r *request, n int) bool {
	for !s.allocate(allocation{r: r, n: n, lookahead: s.cfg.lookahead()}) {
		s.short = true
		victim, at := s.victim()
		if s.fenced() && victim.inFlight > 0 && (len(s.fence.groups) > 0 || victim == r && r.yielded) {
			s.byRule(RuleWaitForFence, r, "waits for blocks that a step in flight still writes")
			return false
		}
		if victim == r && s.reclaim(r) {
			continue
		}
		s.running = append(s.running[:at], s.running[at+1:]...)
		s.withdraw(victim)
		s.preempt(victim)
		s.plan.Preempted = append(s.plan.Preempted, victim.ID)
		if victim == r {
			return false
		}
	}
	return true
}

// victim returns the request to preempt next and its place in the running list: under FCFS the youngest, under
// Priority the least urgent, the first of equals.
func (s *Scheduler) victim() (*request, int) {
	at := len(s.running) - 1
	if s.cfg.Policy == Priority {
		at = 0
		for i, r := range s.running {
			v := s.running[at]
			if r.Priority > v.Priority || r.Priority == v.Priority && r.Arrival > v.Arrival {
				at = i
			}
		}
	}
	return s.running[at], at
}

// preempt takes a request's blocks. The caller has taken it out of the running list. Its output tokens are kept; when
// it resumes, prompt and outputs are computed again, as far as they are not cached. It goes to the front of the
// waiting queue: several victims of one step, taken youngest first, end up there in their old order.
func (s *Scheduler) preempt(r *request) {
	r.epoch++
	s.move(r, Preempted)
	r.preemptions++
	s.counters.Preemptions++
	s.release(r)
	r.computed, r.placeholders, r.spec = 0, 0, r.spec[:0]
	r.prefilling = false
	r.stale = r.inFlight - r.discard
	s.waiting.pushFront(r)
}

// discardInFlight makes the outputs of r's rows in flight mean nothing: they were computed from KV or weights that are no
// longer its own.
func (r *request) discardInFlight() {
	r.epoch++
	r.dropBefore = r.epoch
	r.stale, r.discard = 0, r.inFlight
	r.placeholders, r.spec = 0, r.spec[:0]
}

// release gives all blocks of r back, now or, if a step in flight may still write them and no one else orders the
// writes, once that step has retired.
func (s *Scheduler) release(r *request) {
	n := 0
	for g := range s.cache.Groups() {
		n += r.table.Len(g)
	}
	if n == 0 {
		return
	}
	s.changes = append(s.changes, Change{Kind: Released, ID: r.ID, Blocks: n})
	if full := r.computed / s.cfg.BlockSize; r.table.Registered(0) > full && s.cfg.TestOnlyFault != FaultNoTakeBack {
		// Bad blocks that were still to be computed again. Whoever else holds one computes it.
		if s.cache.ForgetUnshared(&r.table, full) {
			s.byRule(RuleBadIsBad, r, "its bad blocks leave the prefix cache")
		}
	}
	if s.fenced() && r.inFlight > 0 && len(s.inFlight) > 0 { // not if the step that is being taken in was the last
		s.fence.add(s.cache.Detach(&r.table, s.fence.take()))
		return
	}
	s.cache.Release(&r.table)
}

// fenced tells whether released blocks wait for the steps in flight. One device runs steps in order, so a block that a
// later step writes was left alone by then; a connector's transfers keep no such order (vLLM #45357).
func (s *Scheduler) fenced() bool { return s.cfg.Connector != nil && s.cfg.depth() > 1 }

// fence holds blocks that were released while steps in flight may still write them.
type fence struct {
	planned, retired uint64 // steps with requests in them
	groups           []fencedBlocks
	spare            [][]kv.BlockID
}

type fencedBlocks struct {
	until  uint64 // retired count at which they may be used again
	blocks []kv.BlockID
}

// take returns an empty list to fill.
func (f *fence) take() []kv.BlockID {
	if n := len(f.spare); n > 0 {
		b := f.spare[n-1]
		f.spare = f.spare[:n-1]
		return b[:0]
	}
	return nil
}

// add fences blocks behind all steps planned so far.
func (f *fence) add(blocks []kv.BlockID) {
	f.groups = append(f.groups, fencedBlocks{f.planned, blocks})
}

// retireStep counts a step as done and returns the blocks that no step writes any more to the pool.
func (s *Scheduler) retireStep() {
	f := &s.fence
	f.retired++
	n := 0
	for n < len(f.groups) && f.groups[n].until <= f.retired {
		s.cache.Pool().Release(f.groups[n].blocks)
		f.spare = append(f.spare, f.groups[n].blocks)
		n++
	}
	f.groups = append(f.groups[:0], f.groups[n:]...)
}
