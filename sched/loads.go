package sched

import (
	"slices"

	"github.com/quire-ai/quire/kv"
)

// external asks the connector what it can load behind a local hit; false means ask again later.
func (s *Scheduler) external(r *request, local int) (loadMatch, bool) {
	if s.cfg.Connector == nil {
		return loadMatch{}, true
	}
	m := s.cfg.Connector.Match(MatchQuery{
		Request: r.Request, Tokens: r.tokens, Hashes: r.chain.Hashes, Local: local, Loads: r.loaded,
	})
	if r.deferred = m.Deferred; m.Deferred {
		s.askedToWait = true
		return loadMatch{}, false
	}
	return loadMatch{tokens: m.Tokens, async: m.Async && m.Tokens > 0}, true
}

// startLoad puts the load of an admission into the plan.
func (s *Scheduler) startLoad(r *request, a allocation, from int) {
	r.loaded++
	if a.async {
		r.load = loadPending
	}
	blocks := r.table.Blocks(0, 0)
	s.plan.Loads = append(s.plan.Loads, Load{
		ID: r.ID, Epoch: r.epoch, Number: r.loaded, From: from, Tokens: a.external, Async: a.async,
		Blocks: blocks, Hashes: r.chain.Hashes,
	})
	s.changes = append(s.changes, Change{Kind: Loading, ID: r.ID, Epoch: r.epoch, Blocks: len(blocks)})
}

// loadDone ends a load. If its request ended meanwhile, the blocks return now; if the epoch is old, nothing changes.
func (s *Scheduler) loadDone(ev LoadDone) {
	r := s.requests[ev.ID]
	if r == nil {
		s.stale(ev.ID, "no such request")
		return
	}
	if r.state.Finished() {
		// Ending raised the epoch by one, once, so the load of its last life carries the one before.
		if ev.Epoch+1 != r.epoch || !r.load.inFlight() {
			s.stale(ev.ID, "load of an old epoch")
			return
		}
		r.load = loadReceived
		if !r.sending {
			s.forget(r)
		}
		return
	}
	if ev.Epoch != r.epoch || !r.load.inFlight() {
		s.stale(ev.ID, "load of an old epoch")
		return
	}
	if len(ev.Bad) > 0 {
		s.badBlocks(ev.Bad)
		s.settle()
		if r.state.Finished() { // under Fail it ended just now, and its blocks waited for this
			r.load = loadReceived
			if !r.sending {
				s.forget(r)
			}
			return
		}
	}
	if r.load == loadFailed {
		r.load = loadBroken
	} else {
		r.load = loadReceived
	}
}

// inFlight tells whether the transfer is still running.
func (l loadState) inFlight() bool { return l == loadPending || l == loadFailed }

// promote brings back a request whose load is done: to PREEMPTED if it ran before, so that it resumes and is not taken
// for new (vLLM #31583), else to WAITING. What was loaded is registered now.
func (s *Scheduler) promote(r *request) {
	broken := r.load == loadBroken
	r.load = loadNone
	if broken && r.computed == 0 {
		// Nothing came: it starts over. Its claim on free blocks stays, as upstream's does; see recover.
		s.release(r)
		r.epoch++
	}
	s.cache.Register(&r.table, &r.chain, r.tokens[:min(r.computed, len(r.tokens))])
	if !broken && r.computed == len(r.tokens) {
		r.computed-- // the last token is computed in any case, to sample
		if r.computed == 0 {
			s.byRule(RuleLoadedIsLoaded, r, "its one token is loaded")
		}
	}
	if r.preemptions > 0 && s.cfg.TestOnlyFault != FaultLoadForgets {
		s.move(r, Preempted)
	} else {
		s.move(r, Waiting)
	}
}

// badBlocks handles blocks that a load could not fill. Whoever counted them as computed computes them again, or fails:
// see settle.
func (s *Scheduler) badBlocks(bad []kv.BlockID) {
	if len(bad) == 0 {
		return
	}
	fatal := s.cfg.LoadFailure == Fail
	var first []kv.BlockID // at which loads were cut
	for r := range s.deferred.all {
		switch {
		case r.state == WaitingForRemoteKVs && r.load.inFlight():
			b := s.truncateLoad(r, bad)
			if b == kv.Null {
				continue
			}
			if slices.Contains(first, b) {
				s.byRule(RuleBadIsBad, r, "does not count on another to compute a bad block")
			}
			first = append(first, b)
			s.spoil(r, fatal)
		case r.holdsAny(bad):
			s.startOver(r, RuleBadIsBad)
		}
	}
	s.spoilRunning(nil, bad, fatal)
}

// spoilRunning takes back the computed tokens of running requests from the first bad block on. One of them computes the
// bad blocks again, where they stand; if r is given, it is r that was to fill them, and it ends. The others are preempted,
// the youngest first: two rows must not fill one slot.
func (s *Scheduler) spoilRunning(r *request, bad []kv.BlockID, fatal bool) {
	kept := r
	var others []*request
	for _, o := range s.running {
		if o == r || !s.truncateRunning(o, bad, fatal) {
			continue
		}
		s.spoil(o, fatal)
		if kept == nil || fatal {
			kept = o
			continue
		}
		others = append(others, o)
	}
	for _, o := range slices.Backward(others) {
		s.running = slices.DeleteFunc(s.running, func(x *request) bool { return x == o })
		s.preempted = append(s.preempted, o.ID)
		s.byRule(RuleBadIsBad, o, "shares a bad block")
		s.preempt(o)
		o.discardInFlight()
	}
}

// holdsAny tells whether one of the blocks is in the table of r's first cache group.
func (r *request) holdsAny(blocks []kv.BlockID) bool {
	return slices.ContainsFunc(r.table.Blocks(0, 0), func(b kv.BlockID) bool { return slices.Contains(blocks, b) })
}

// spoil notes that some of r's blocks are bad. What its rows in flight return means nothing.
func (s *Scheduler) spoil(r *request, fatal bool) {
	if r.state == Running {
		if !fatal && (r.inFlight > r.retiring || s.cfg.SpecTokens > 0) {
			s.byRule(RuleBadIsBad, r, "what its rows in flight return is dropped")
		}
		r.discardInFlight()
	}
	if !r.spoiled {
		r.spoiled = true
		s.spoiled = append(s.spoiled, r)
	}
	r.spoiledFatally = r.spoiledFatally || fatal
}

// truncateLoad cuts a loading request's computed tokens at the first bad block and returns it; the null block if there is none.
func (s *Scheduler) truncateLoad(r *request, bad []kv.BlockID) kv.BlockID {
	for i, b := range r.table.Blocks(0, 0) {
		if r.load == loadFailed && i*s.cfg.BlockSize >= r.computed {
			break
		}
		if slices.Contains(bad, b) {
			r.computed = i * s.cfg.BlockSize
			r.load = loadFailed
			return b
		}
	}
	return kv.Null
}

// truncateRunning does the same for a running request. Its blocks from there on stay registered but are not hit before
// they were computed again; if the request is to fail, they leave the prefix cache.
func (s *Scheduler) truncateRunning(r *request, bad []kv.BlockID, fatal bool) bool {
	counted := r.computed - r.retiring // the retiring step's own tokens are dropped in any case
	end := (counted + s.cfg.BlockSize - 1) / s.cfg.BlockSize
	blocks := r.table.Blocks(0, 0)
	for i, b := range blocks[:min(end, len(blocks))] {
		if !slices.Contains(bad, b) {
			continue
		}
		r.computed = i * s.cfg.BlockSize
		if fatal {
			if _, ok := s.cache.Pool().Hash(b); !ok && i < r.table.Registered(0) {
				s.byRule(RuleBadIsBad, r, "what follows a block that another took out leaves the prefix cache")
			}
			s.cache.Unregister(&r.table, i)
		} else {
			s.cache.Taint(&r.table, i)
		}
		return true
	}
	return false
}

// sendDone ends the transfer that kept a finished request's blocks.
func (s *Scheduler) sendDone(ev SendDone) {
	r := s.requests[ev.ID]
	if r == nil || !r.sending || ev.Epoch != r.epoch {
		s.stale(ev.ID, "no such send")
		return
	}
	r.sending = false
	if !r.load.inFlight() {
		s.forget(r)
	}
}
