package sched

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/kv"
)

// stepDone takes a step's outputs in. The step must be the oldest in flight; outputs of one that is not known are
// ignored.
func (s *Scheduler) stepDone(ev *StepDone) {
	if len(s.inFlight) == 0 || ev.Step < s.inFlight[0].Step || ev.Step > s.step {
		if len(ev.Outputs) > 0 || ev.Err != "" {
			s.stale("", fmt.Sprintf("step %d is not in flight", ev.Step))
		}
		s.badBlocks(ev.Bad)
		s.settle()
		return
	}
	p := s.inFlight[0]
	if p.Step != ev.Step {
		invariant.Broken("step %d is returned while step %d is the oldest in flight", ev.Step, p.Step)
	}
	s.inFlight = append(s.inFlight[:0], s.inFlight[1:]...)
	s.retireStep()
	s.spoilStep(p, ev)
	next := 0 // cursor into ev.Outputs, which are in plan order
	for i := range p.Requests {
		item := &p.Requests[i]
		var out *StepOutput
		if next < len(ev.Outputs) && ev.Outputs[next].ID == item.ID {
			out = &ev.Outputs[next]
			next++
		}
		s.rowDone(item, out, ev.Err)
	}
	if next != len(ev.Outputs) {
		invariant.Broken("step %d: output %d of %d is not in plan order", ev.Step, next, len(ev.Outputs))
	}
	s.sweepRunning()
	s.settle()
}

// spoilStep looks for blocks of the step that hold bad KV: those that its synchronous loads could not fill, and those that
// rows filled which failed. Everybody who computed on top of them must do so again.
func (s *Scheduler) spoilStep(p *Plan, ev *StepDone) {
	failed := ev.Err != ""
	for i := range ev.Outputs {
		failed = failed || ev.Outputs[i].Err != ""
	}
	if len(ev.Bad) == 0 && !failed {
		return
	}
	for i := range p.Requests {
		if item := &p.Requests[i]; item.epoch == item.r.epoch { // else its tokens are not counted as computed any more
			item.r.retiring = item.N
		}
	}
	s.badBlocks(ev.Bad)
	if len(ev.Bad) > 0 {
		s.discardVictims(p)
	}
	next := 0
	var orphaned []*request // whose row failed, and which were preempted or ended meanwhile
	for i := range p.Requests {
		item := &p.Requests[i]
		rowErr := ev.Err
		if next < len(ev.Outputs) && ev.Outputs[next].ID == item.ID {
			rowErr += ev.Outputs[next].Err
			next++
		}
		switch r := item.r; {
		case rowErr == "":
		case r.state == Running && item.epoch == r.epoch:
			s.spoilHolders(r, s.filledBy(r, item.registered), false)
		case r.state == Running && item.epoch >= r.resident:
			// Dropped already: what it filled is computed again, by steps that come after it.
		default:
			orphaned = append(orphaned, r)
		}
	}
	if len(orphaned) > 0 {
		s.spoilHolders(nil, s.suspects(p.Step, orphaned), false)
	}
	for i := range p.Requests {
		p.Requests[i].r.retiring = 0
	}
	s.forgetSince(p.Step)
}

// discardVictims handles requests that were preempted while the step was in flight that has bad blocks. What they computed
// on is not known any more: their tokens in flight mean nothing.
func (s *Scheduler) discardVictims(p *Plan) {
	if !slices.ContainsFunc(p.Loads, func(l Load) bool { return !l.Async }) {
		return // the bad blocks are of requests that were not running
	}
	for i := range p.Requests {
		if r := p.Requests[i].r; r.state == Preempted && r.stale > 0 {
			r.discardInFlight()
			s.byRule(RuleBadIsBad, r, "its tokens in flight may come of a bad block")
		}
	}
}

// filledBy returns the registered blocks of r from index first on, of all groups.
func (s *Scheduler) filledBy(r *request, first int) []kv.BlockID {
	var blocks []kv.BlockID
	for g := range s.cache.Groups() {
		blocks = append(blocks, r.table.Blocks(g, first)[:r.table.Registered(g)-first]...)
	}
	return blocks
}

// forgetSince takes blocks out of the prefix cache that were registered since the step began and that no request holds any
// more: their owners were preempted or ended while the step that spoilt them was in flight, so nobody will compute them.
func (s *Scheduler) forgetSince(step uint64) {
	for _, b := range s.registeredSince(step) {
		if !s.held(b) {
			s.cache.Forget(b)
			s.changes = append(s.changes, Change{Kind: Recovered, Rule: RuleBadIsBad, Note: "a block nobody holds leaves the prefix cache"})
		}
	}
}

// registeredSince returns the blocks that entered the prefix cache in the step or later.
func (s *Scheduler) registeredSince(step uint64) []kv.BlockID {
	var blocks []kv.BlockID
	pool := s.cache.Pool()
	for b := kv.BlockID(1); int(b) <= pool.Usable(); b++ {
		if pool.RegisteredSince(b, step) {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// suspects returns the blocks that rows of a step may have spoilt whose requests were preempted or ended meanwhile. Which
// blocks those filled is not known any more, so it is all that entered the prefix cache since; but not what such a request
// has got in its present life. If that lies behind a suspect it is found as such; else a request whose rows fail would be
// preempted by the failure of one life in the next, for ever.
func (s *Scheduler) suspects(step uint64, orphaned []*request) []kv.BlockID {
	blocks := s.registeredSince(step)
	for _, r := range orphaned {
		if r.state != Running {
			continue
		}
		for g := range s.cache.Groups() {
			own := r.table.Blocks(g, 0)
			blocks = slices.DeleteFunc(blocks, func(b kv.BlockID) bool {
				return s.cache.Pool().RegisteredSince(b, r.admitted) && slices.Contains(own, b)
			})
		}
	}
	return blocks
}

// held tells whether a live request's table holds b.
func (s *Scheduler) held(b kv.BlockID) bool {
	for r := s.allFirst; r != nil; r = r.allNext {
		for g := range s.cache.Groups() {
			if !r.state.Finished() && slices.Contains(r.table.Blocks(g, 0), b) {
				return true
			}
		}
	}
	return false
}

// settle ends what a step's end brings to light beyond its rows: requests whose grammar turned out faulty and, under Fail,
// those whose load failed, in order of id. Under Recompute the latter go on from where their KV is good.
func (s *Scheduler) settle() {
	if len(s.failedGrammar)+len(s.spoiled) == 0 {
		return
	}
	s.ending = append(append(s.ending[:0], s.failedGrammar...), s.spoiled...)
	slices.SortFunc(s.ending, func(a, b *request) int { return cmp.Compare(a.ID, b.ID) })
	for _, r := range s.ending {
		var err error
		switch {
		case r.grammar == grammarFailed:
			err = errors.New("grammar: " + r.grammarErr)
		case r.spoiledFatally:
			err = errors.New("external KV could not be loaded")
		}
		r.spoiled, r.spoiledFatally = false, false
		if err != nil && !r.state.Finished() {
			s.finish(r, ending{reason: ReasonError, err: err})
		}
	}
	s.failedGrammar, s.spoiled = s.failedGrammar[:0], s.spoiled[:0]
	s.sweepRunning()
}

// rowDone takes in what one planned request's row gave.
func (s *Scheduler) rowDone(item *Planned, out *StepOutput, stepErr string) {
	r := item.r
	item.r = nil
	r.inFlight -= item.N
	late := item.epoch != r.epoch // planned before a preemption, an abort or the end
	if r.state.Finished() {
		return
	}
	if item.epoch < r.dropBefore {
		r.discard -= item.N
		return
	}
	if late {
		r.stale -= item.N
	}
	switch {
	case stepErr != "":
		s.rowFailed(r, item, stepErr)
		return
	case out != nil && out.Err != "":
		s.rowFailed(r, item, out.Err)
		return
	case item.Sample && (out == nil || len(out.Tokens) == 0):
		s.rowFailed(r, item, "the executor returned no token")
		return
	}
	if s.cfg.Connector != nil && !late {
		s.noteFilled(r, item)
	}
	if out != nil {
		s.take(r, item, out, late)
	}
}

// noteFilled offers the blocks that a row completed to the connector. The blocks of adapters stay in the pool.
func (s *Scheduler) noteFilled(r *request, item *Planned) {
	from, to := item.From/s.cfg.BlockSize, min((item.From+item.N)/s.cfg.BlockSize, r.table.Registered(0))
	if from < to && r.LoRA == "" {
		s.filled = append(s.filled, Filled{ID: r.ID, From: from, To: to, Hashes: r.chain.Hashes, Tables: s.tables(r)})
	}
}

// Filled returns what the step that was just applied completed, for connectors: a view, valid until the next call of
// Apply or Schedule. Without a connector it is empty.
func (s *Scheduler) Filled() []Filled { return s.filled }

// take appends the row's tokens, until one ends the request.
func (s *Scheduler) take(r *request, item *Planned, out *StepOutput, late bool) {
	if len(out.Tokens) == 0 {
		return
	}
	if !item.Sample {
		invariant.Broken("request %s: the executor sampled a row with known tokens left", r.ID)
	}
	if rejected := len(item.Drafts) + 1 - len(out.Tokens); rejected > 0 && !late {
		r.computed -= rejected
		r.placeholders = max(0, r.placeholders-rejected)
	}
	n := 0
	var end ending
	for end.reason == 0 && n < len(out.Tokens) {
		s.changes = append(s.changes, Change{Kind: Emitted, ID: r.ID, Token: out.Tokens[n], Position: r.outputs()})
		r.tokens = append(r.tokens, out.Tokens[n])
		n++
		end.reason, end.token = s.endOf(r)
	}
	s.counters.GeneratedTokens += uint64(n)
	s.cache.Extend(&r.chain, r.tokens)
	if s.cfg.AsyncScheduling && !late {
		r.placeholders -= n
		s.cache.Register(&r.table, &r.chain, r.tokens[:min(r.computed-r.placeholders, len(r.tokens))])
	}
	if end.reason != 0 {
		s.finish(r, end)
		return
	}
	if !s.cfg.AsyncScheduling && !late && !r.prefillChunk && s.cfg.SpecTokens > 0 {
		r.spec = append(r.spec[:0], out.Drafts...)
	}
}

// endOf returns why the last token of r ends it, and the stop token that did if one of StopTokenIDs; 0 if it goes on.
func (s *Scheduler) endOf(r *request) (Reason, *int32) {
	n := len(r.tokens)
	last := r.tokens[n-1]
	switch {
	case r.outputs() < r.MinTokens:
		if n >= s.limit {
			return ReasonLength, nil
		}
	case !r.IgnoreEOS && slices.Contains(r.EOS, last):
		return ReasonStop, nil
	case slices.Contains(r.StopTokenIDs, last):
		return ReasonStop, &r.tokens[n-1]
	case n >= s.limit || r.MaxTokens > 0 && r.outputs() >= r.MaxTokens:
		return ReasonLength, nil
	}
	return 0, nil
}

// rowFailed ends one request. What its row would have filled leaves the prefix cache.
func (s *Scheduler) rowFailed(r *request, item *Planned, why string) {
	if r.state == Running {
		s.cache.Unregister(&r.table, item.registered)
	}
	s.finish(r, ending{reason: ReasonError, err: errors.New(why)})
}

// sweepRunning closes up the running list after requests in it ended.
func (s *Scheduler) sweepRunning() {
	kept := s.running[:0]
	for _, r := range s.running {
		if r.state == Running {
			kept = append(kept, r)
		}
	}
	clear(s.running[len(kept):])
	s.running = kept
}
