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
	tables := s.tables(r)
	s.plan.Loads = append(s.plan.Loads, Load{
		ID: r.ID, Epoch: r.epoch, Number: r.loaded, From: from, Tokens: a.external, Async: a.async,
		Tables: tables, Hashes: r.chain.Hashes,
	})
	blocks := 0
	for _, t := range tables {
		for _, b := range t {
			if b != kv.Null {
				blocks++
			}
		}
	}
	s.changes = append(s.changes, Change{Kind: Loading, ID: r.ID, Epoch: r.epoch, Blocks: blocks})
}

// tables returns r's block tables: views, valid as they are, in memory of their own.
func (s *Scheduler) tables(r *request) [][]kv.BlockID {
	tables := make([][]kv.BlockID, s.cache.Groups())
	for g := range tables {
		tables[g] = r.table.Blocks(g, 0)
	}
	return tables
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
	if len(bad) > 0 {
		s.spoilHolders(nil, bad, s.cfg.LoadFailure == Fail)
	}
}

// spoilHolders takes back the computed tokens of everybody who holds bad blocks, from the first of them on. One running
// request computes them again, where they stand, unless a window no longer reaches back there; if a filler is given, it is
// the one that was to fill them, and it ends. The others are preempted, the youngest first: two rows must not fill one slot.
func (s *Scheduler) spoilHolders(filler *request, bad []kv.BlockID, fatal bool) {
	s.findBad(filler, bad)
	var cuts []kv.BlockID // blocks at which loads were cut
	for r := range s.deferred.all {
		switch {
		case r.badFrom < 0:
		case r.state == WaitingForRemoteKVs:
			at := r.table.Blocks(0, r.badFrom)[0]
			if slices.Contains(cuts, at) {
				s.byRule(RuleBadIsBad, r, "does not count on another to compute a bad block")
			}
			cuts = append(cuts, at)
			s.truncateLoad(r, fatal)
		default:
			s.startOver(r, RuleBadIsBad)
		}
	}
	kept := filler
	var others []*request
	for _, o := range s.running {
		if o.badFrom < 0 {
			continue
		}
		s.truncateRunning(o, fatal)
		s.spoil(o, fatal)
		switch {
		case fatal:
		case kept == nil && s.cache.Reaches(&o.table, o.computed):
			kept = o
		default:
			others = append(others, o)
		}
	}
	for _, o := range slices.Backward(others) {
		s.running = slices.DeleteFunc(s.running, func(x *request) bool { return x == o })
		s.preempted = append(s.preempted, o.ID)
		s.byRule(RuleBadIsBad, o, "shares a bad block")
		s.preempt(o)
		o.discardInFlight()
	}
}

// findBad notes for each live request but the filler which of its blocks is the first bad one. What a running request has
// computed behind a bad block is bad too, and may be in others' tables though the block itself is not: they may hold another
// with the same tokens, or lie so far behind it that their windows do not reach it.
func (s *Scheduler) findBad(filler *request, blocks []kv.BlockID) {
	bad := map[kv.BlockID]bool{}
	for _, b := range blocks {
		bad[b] = true
	}
	delete(bad, kv.Null)
	for r := s.allFirst; r != nil; r = r.allNext {
		r.badFrom = -1
	}
	for grew := true; grew; {
		grew = false
		for r := s.allFirst; r != nil; r = r.allNext {
			i := s.firstBad(r, bad)
			if r == filler || i < 0 || r.badFrom >= 0 && i >= r.badFrom {
				continue
			}
			r.badFrom = i
			for g := 0; r.state == Running && g < s.cache.Groups(); g++ {
				for _, b := range r.table.Blocks(g, i) {
					if b != kv.Null && !bad[b] {
						bad[b], grew = true, true
					}
				}
			}
		}
	}
}

// firstBad returns the index of the first block of r that is bad in any group, −1 if none is that counts: tokens of a
// step that is being taken in are dropped in any case, and so is what lies behind a load's first bad block.
func (s *Scheduler) firstBad(r *request, bad map[kv.BlockID]bool) int {
	end := r.table.Len(0)
	switch {
	case r.state.Finished():
		end = 0
	case r.state == Running:
		end = min(end, (r.computed-r.retiring+s.cfg.BlockSize-1)/s.cfg.BlockSize)
	case r.load == loadFailed || r.load == loadBroken:
		end = r.computed / s.cfg.BlockSize
	}
	for i := range end {
		for g := range s.cache.Groups() {
			if bad[r.table.Blocks(g, i)[0]] {
				return i
			}
		}
	}
	return -1
}

// spoil notes that some of r's blocks are bad. What its rows in flight return means nothing.
func (s *Scheduler) spoil(r *request, fatal bool) {
	if r.state == Running {
		if !fatal && (r.inFlight > r.retiring || s.cfg.SpecTokens > 0) {
			s.byRule(RuleBadIsBad, r, "what its rows in flight return is dropped")
		}
		r.discardInFlight()
		r.retiring = 0 // they are not counted as computed any more
	}
	if !r.spoiled {
		r.spoiled = true
		s.spoiled = append(s.spoiled, r)
	}
	r.spoiledFatally = r.spoiledFatally || fatal
}

// truncateLoad cuts a loading request's computed tokens at its first bad block: to none if the windows do not reach back
// there, and then it starts over once the load is done. One whose load is done had the bad block from its local hit.
func (s *Scheduler) truncateLoad(r *request, fatal bool) {
	r.computed = r.badFrom * s.cfg.BlockSize
	if !s.cache.Reaches(&r.table, r.computed) {
		r.computed = 0
		s.byRule(RuleBadIsBad, r, "no window reaches back to where its KV is good")
	}
	if r.load.done() {
		r.load = loadBroken
		s.byRule(RuleBadIsBad, r, "its local hit turned out bad")
		return
	}
	r.load = loadFailed
	s.spoil(r, fatal)
}

// truncateRunning does the same for a running request. Its blocks from there on stay registered but are not hit before
// they were computed again; if the request is to fail, they leave the prefix cache.
func (s *Scheduler) truncateRunning(r *request, fatal bool) {
	r.computed = r.badFrom * s.cfg.BlockSize
	if fatal {
		b := r.table.Blocks(0, r.badFrom)[0]
		if _, ok := s.cache.Pool().Hash(b); !ok && b != kv.Null && r.badFrom < r.table.Registered(0) {
			s.byRule(RuleBadIsBad, r, "what follows a block that another took out leaves the prefix cache")
		}
		s.cache.Unregister(&r.table, r.badFrom)
	} else {
		s.cache.Taint(&r.table, r.badFrom)
	}
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
