package sched

import (
	"slices"

	"github.com/quire-ai/quire/internal/invariant"
)

// Schedule makes the next plan. now is a number of the caller's clock, since the core reads none itself: it is kept as
// the time of what happens from here on, and decides nothing.
//
// There is no prefill or decode phase: a request has computed and known tokens, and each step brings computed towards
// known. Running requests come first, in admission order; what is left of the budget goes to the waiting ones.
func (s *Scheduler) Schedule(now float64) *Plan {
	s.now = now
	s.begin()
	s.runningPass()
	s.decodesOnly = !s.plan.Idle() && !s.prefillPlanned
	if !s.short && s.pause == Unpaused {
		s.waitingPass()
	}
	if s.stuck() && s.cfg.TestOnlyFault != FaultNoRecovery {
		s.recover()
	}
	s.commit()
	s.checkProgress()
	s.audit()
	return s.plan
}

// begin opens a plan.
func (s *Scheduler) begin() {
	if len(s.inFlight) >= s.cfg.depth() {
		invariant.Broken("a plan is made while %d of %d steps are in flight", len(s.inFlight), s.cfg.depth())
	}
	s.step++
	s.cache.Pool().Step(s.step)
	s.plan = &s.plans[s.slot]
	s.plan.reset(s.step)
	s.boundEvents()
	s.plan.eventsBefore = s.eventsTaken + uint64(len(s.cache.Events()))
	s.changes = s.plan.Changes[:0]
	if s.cfg.depth() == 1 {
		s.settle() // if the last plan had no requests, and was not returned
	}
	s.plan.Preempted = append(s.plan.Preempted, s.preempted...)
	s.preempted = s.preempted[:0]
	s.loras = s.loras[:0]
	s.cache.DropEvictions()
	s.short, s.prefillPlanned, s.askedToWait = false, false, false
	s.budget = s.cfg.MaxNumBatchedTokens
	if s.pause == PausedAll {
		s.budget = 0
	}
}

// runningPass plans the running requests, preempting from the other end of the list where blocks run out.
func (s *Scheduler) runningPass() {
	for i := 0; i < len(s.running) && s.budget > 0; {
		r := s.running[i]
		n := s.chunk(r)
		if n <= 0 || s.oneAdapterTooMany(r) {
			i++ // not strictly first come, first served: later ones may use the budget
			continue
		}
		registered, held := r.table.Registered(0), r.table.Len(0)
		if !s.allocateRunning(r, n) {
			return
		}
		if s.short {
			i = slices.Index(s.running, r) // victims may have stood before it
		}
		p := s.planRequest(r, KindRunning, n, held)
		p.registered = min(registered, p.From/s.cfg.BlockSize)
		s.prefillPlanned = s.prefillPlanned || r.prefillChunk
		p.Drafts = r.scheduledDrafts(n)
		r.spec = r.spec[:0]
		i++
	}
}

// chunk returns how many tokens r can have computed in this step.
func (s *Scheduler) chunk(r *request) int {
	if r.placeholders > 0 && r.MaxTokens > 0 && r.computed+2-r.placeholders >= len(r.Prompt)+r.MaxTokens {
		return 0 // its last token is in flight already
	}
	n := s.chunkedLen(len(r.tokens) + len(r.spec) + r.placeholders - r.computed)
	return min(n, s.budget, s.limit-1-r.computed)
}

// scheduledDrafts returns the drafts among the n tokens planned for r.
func (r *request) scheduledDrafts(n int) []int32 {
	k := n + r.computed - len(r.tokens) - r.placeholders
	if k <= 0 || len(r.spec) == 0 {
		return nil
	}
	return r.spec[:min(k, len(r.spec))]
}

// planRequest adds r to the plan with its next n tokens. held is the number of blocks the executor knows already.
func (s *Scheduler) planRequest(r *request, kind Kind, n, held int) *Planned {
	r.planned = len(s.plan.Requests)
	known := len(r.tokens)
	more := s.plan.spareTables()
	for g := 1; g < s.cache.Groups(); g++ {
		more = append(more, r.table.Blocks(g, held))
	}
	s.plan.Requests = append(s.plan.Requests, Planned{
		ID: r.ID, Kind: kind, From: r.computed, N: n, Priority: r.Priority,
		Tokens: r.tokens[min(r.computed, known):min(r.computed+n, known):min(r.computed+n, known)],
		Blocks: r.table.Blocks(0, held), MoreBlocks: more,
		Outputs: r.outputs() + r.placeholders,
		r:       r, epoch: r.epoch,
	})
	p := &s.plan.Requests[r.planned]
	s.budget -= n
	s.plan.TotalTokens += n
	if r.LoRA != "" && s.cfg.MaxLoRAs > 0 && !s.adapterPlanned(r.LoRA) {
		s.loras = append(s.loras, r.LoRA)
	}
	return p
}

// withdraw takes a victim out of the plan if it is in it already: its tokens return to the budget, and the hashes of
// blocks that this step would have filled leave the prefix cache, or a later request would read KV nobody computed.
func (s *Scheduler) withdraw(r *request) {
	if r.planned < 0 {
		return
	}
	p := &s.plan.Requests[r.planned]
	taken := r.table.Registered(0) - p.registered
	if s.cfg.TestOnlyFault != FaultNoTakeBack {
		s.cache.Unregister(&r.table, p.registered)
	}
	s.budget += p.N
	s.plan.drop(r.planned)
	c := Change{Kind: Withdrawn, ID: r.ID, Blocks: taken}
	if taken > 0 {
		c.Rule = RuleTakeBack
	}
	s.changes = append(s.changes, c)
}

// commit closes the plan: computed advances now, so that a chunked prefill can go on before this step's output is known.
func (s *Scheduler) commit() {
	p := s.plan
	most, seats := s.cfg.MaxNumBatchedTokens, s.cfg.MaxNumSeqs
	if p.TotalTokens > most {
		invariant.Broken("invariant 6: %d tokens planned, the budget is %d", p.TotalTokens, most)
	}
	if len(s.running) > seats {
		invariant.Broken("invariant 6: %d requests run, at most %d may", len(s.running), seats)
	}
	for i := range p.Requests {
		s.advance(&p.Requests[i])
	}
	p.Finished = append(p.Finished, s.finished...)
	s.finished = s.finished[:0]
	p.Evicted = append(p.Evicted, s.cache.Evictions()...)
	p.Changes = s.changes
	s.changes = nil
	s.counters.Steps++
	s.counters.ScheduledTokens += uint64(p.TotalTokens)
	if len(p.Requests) > 0 {
		s.inFlight = append(s.inFlight, p)
		s.slot = (s.slot + 1) % len(s.plans)
		s.fence.planned++
	}
}

// advance counts a planned request's tokens as computed.
func (s *Scheduler) advance(p *Planned) {
	r := p.r
	r.planned = -1
	if redone := min(r.computed+p.N, r.highWater) - r.computed; redone > 0 {
		s.counters.RecomputedTokens += uint64(redone)
	}
	r.computed += p.N
	r.highWater = max(r.highWater, r.computed)
	r.inFlight += p.N
	r.prefillChunk = r.computed < len(r.tokens)+r.placeholders
	p.Sample = !r.prefillChunk
	if r.prefillChunk {
		return
	}
	r.prefilling = false
	if s.cfg.AsyncScheduling {
		r.placeholders += 1 + len(p.Drafts)
		r.spec = append(r.spec[:0], s.padding...) // the executor knows the drafts
	}
}
