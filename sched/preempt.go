package sched

import "github.com/quire-ai/quire/kv"

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
		s.cache.ForgetUnshared(&r.table, full)
		s.byRule(RuleBadIsBad, r, "its bad blocks leave the prefix cache")
	}
	if s.fenced() && r.inFlight > 0 {
		s.fence.add(s.cache.Detach(&r.table, s.fence.take()))
		return
	}
	s.cache.Release(&r.table)
}

// fenced tells whether released blocks wait for the steps in flight. One device runs steps in order, so a block that a
// later step writes was left alone by then; a connector's transfers keep no such order (vLLM #45357).
func (s *Scheduler) fenced() bool { return s.cfg.Connector != nil && s.cfg.depth() > 1 }

// drainFirst puts off the preemption of a victim whose blocks would come back only when steps in flight have retired: it
// would make no room now, nor would the next victim, and one shortage would preempt everybody (vLLM #49674). The victim is
// not planned until its steps have retired; then it gives its blocks up at once.
func (s *Scheduler) drainFirst(victim *request) {
	victim.draining = true
	s.byRule(RuleDrainFirst, victim, "is drained before it is preempted")
}

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
