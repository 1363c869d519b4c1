package sched

import (
	"slices"

	"github.com/quire-ai/quire/kv"
)

// verdict is what the waiting pass decides about the request it looks at.
type verdict uint8

const (
	admitted   verdict = iota
	passOver           // not this one in this step; go on behind it
	stopPass           // not now, and nobody may overtake it: head-of-line blocking is deliberate
	turnedAway         // it has ended and left its queue
)

// waitingPass admits waiting requests while budget, seats and blocks last. Requests it had to pass over are put before
// all other deferred ones, in their order.
func (s *Scheduler) waitingPass() {
	for s.budget > 0 && len(s.running) < s.cfg.MaxNumSeqs {
		q := s.nextQueue()
		if q == nil {
			break
		}
		r := q.head()
		v := s.consider(r)
		if v == stopPass {
			break
		}
		if v == turnedAway {
			continue
		}
		if s.cfg.TestOnlyFault == FaultPopsFront {
			r = q.head()
		}
		q.remove(r)
		if v == passOver {
			s.skip = append(s.skip, r)
		}
	}
	s.putBack()
}

// putBack returns the requests passed over to the front of the deferred queue, in their order.
func (s *Scheduler) putBack() {
	for i := len(s.skip) - 1; i >= 0; i-- {
		s.deferred.pushFront(s.skip[i])
	}
	s.skip = s.skip[:0]
}

// nextQueue returns the queue whose head is to be considered: under FCFS the deferred ones first, under Priority the
// more urgent head; nil if both are empty.
func (s *Scheduler) nextQueue() *queue {
	d, w := s.deferred.head(), s.waiting.head()
	switch {
	case d == nil && w == nil:
		return nil
	case d == nil:
		return &s.waiting
	case w == nil || s.cfg.Policy == FCFS || d.before(w):
		return &s.deferred
	}
	return &s.waiting
}

// consider tries to admit r, the head of a queue.
func (s *Scheduler) consider(r *request) verdict {
	if !s.unpark(r) {
		return passOver
	}
	if r.stale > 0 {
		return passOver // its tokens in flight will still be delivered: resuming now could sample a position twice
	}
	if s.oneAdapterTooMany(r) {
		return passOver
	}
	a := allocation{r: r, admission: true}
	local := 0
	looksUp := r.table.Empty() // whoever holds blocks has been looked up: a load may leave computed at 0
	if s.cfg.TestOnlyFault == FaultLoadsAgain && r.computed == 0 {
		s.release(r)
		looksUp = true
	}
	var m loadMatch
	if looksUp {
		a.hit = s.lookup(r)
		local = a.hit.Tokens
		if a.hit.Tainted {
			s.byRule(RuleBadIsBad, r, "its hit ends before a bad block")
		}
		var ok bool
		if m, ok = s.external(r, local); !ok {
			return passOver
		}
	}
	if found := r.computed + local + m.tokens; r.belowThreshold(found) {
		s.finish(r, ending{reason: ReasonCacheThreshold, cached: found})
		return turnedAway
	}
	a.external, a.async = m.tokens, m.async
	if !a.async {
		a.lookahead = s.cfg.lookahead()
		if a.n, a.drafts = s.admissionChunk(r, r.computed+local+m.tokens); a.n == 0 {
			return stopPass
		}
	} else if !s.recovering {
		a.reserved = s.reserved()
	}
	if total := r.computed + local + m.tokens; total == len(r.tokens) && s.cache.Skips(total-1, total) {
		s.byRule(RuleSeenIsKept, r, "holds what its last token sees")
	}
	if !s.allocate(a) && !s.popFrontFault(a) {
		return stopPass
	}
	if looksUp {
		s.countLookup(r, local, m.tokens)
	}
	r.computed += local + m.tokens
	s.admit(r, a)
	return admittedUnless(a.async)
}

// belowThreshold tells whether so few tokens of a request that has not run are found that it is not to run. It is asked
// before a load, and again after it: what a load did not bring is not found.
func (r *request) belowThreshold(found int) bool {
	return r.cached < 0 && float64(found) < r.CacheHitThreshold*float64(len(r.Prompt))
}

// admittedUnless maps a started load to passOver: the request waits among the deferred ones.
func admittedUnless(async bool) verdict {
	if async {
		return passOver
	}
	return admitted
}

// lookup finds the local prefix of r, at most all but its last token, which must be computed to sample.
func (s *Scheduler) lookup(r *request) *kv.Hit {
	if r.SkipCache {
		return s.cache.Lookup(&r.chain, 0)
	}
	return s.cache.Lookup(&r.chain, len(r.tokens)-1)
}

// admissionChunk returns how many tokens of r to compute at its admission, 0 if none can, and how many of them are drafts.
func (s *Scheduler) admissionChunk(r *request, computed int) (n, drafts int) {
	n = len(r.tokens) - computed
	if n == 1 && s.cfg.SpecTokens > 0 && s.decodesOnly {
		// All else in the step are decodes with drafts. Padded with drafts that will be rejected, or filled in by the
		// executor, this one has their shape; unpadded it would break it.
		n += s.cfg.SpecTokens
		if n > s.budget || computed+n > s.poolMax {
			return 0, 0
		}
		n = s.chunkedLen(n)
		return n, n - 1
	}
	n = s.chunkedLen(n)
	if s.cfg.NoChunkedPrefill && n > s.budget && !s.recovering {
		return 0, 0
	}
	return min(n, s.budget), 0
}

// admit seats r, whose blocks are allocated: running, or waiting for its load.
func (s *Scheduler) admit(r *request, a allocation) {
	if a.external > 0 {
		s.startLoad(r, a, r.computed-a.external)
	}
	if a.async {
		r.prefilling = true
		s.move(r, WaitingForRemoteKVs)
		return
	}
	kind := KindNew
	if r.state == Preempted {
		kind = KindResumed
	}
	s.makeRoom(r)
	s.move(r, Running)
	r.resident, r.admitted = r.epoch, s.plan.Step
	s.running = append(s.running, r)
	if r.cached < 0 {
		r.cached = r.computed
	}
	p := s.planRequest(r, kind, a.n, 0)
	p.Drafts = s.padding[:a.drafts]
	p.registered = min(r.computed/s.cfg.BlockSize, r.table.Registered(0))
	if r.computed+a.n < len(r.tokens) {
		r.prefilling = true
	}
}

// oneAdapterTooMany tells whether planning r would take more adapters into the step than may be.
func (s *Scheduler) oneAdapterTooMany(r *request) bool {
	return r.LoRA != "" && s.cfg.MaxLoRAs > 0 && len(s.loras) >= s.cfg.MaxLoRAs && !s.adapterPlanned(r.LoRA)
}

// adapterPlanned tells whether a request with the adapter is in the plan.
func (s *Scheduler) adapterPlanned(name string) bool {
	return slices.Contains(s.loras, name)
}

// unpark tells whether r may be admitted, bringing it back from a wait that is over.
func (s *Scheduler) unpark(r *request) bool {
	switch r.state {
	case WaitingForRemoteKVs:
		if !r.load.done() {
			return false
		}
		s.promote(r)
	case WaitingForGrammar:
		if r.grammar == grammarFailed && !slices.Contains(s.failedGrammar, r) {
			s.failedGrammar = append(s.failedGrammar, r)
		}
		if r.grammar != grammarReady {
			return false
		}
		s.move(r, Waiting)
	}
	return true
}

// countLookup counts an admission's lookups, once: attempts that failed are not counted.
func (s *Scheduler) countLookup(r *request, local, external int) {
	c := &s.counters
	if !s.cfg.NoPrefixCaching && !r.SkipCache {
		c.prefix(r.preemptions > 0).add(len(r.tokens), local)
	}
	if s.cfg.Connector != nil && len(r.tokens) > local {
		c.external(r.preemptions > 0).add(len(r.tokens)-local, external)
	}
}
