package sched

import "github.com/quire-ai/quire/kv"

// Kind says how the executor should take a planned request.
type Kind uint8

// The kinds.
const (
	KindNew     Kind = iota + 1 // never planned before: Blocks is the whole table
	KindRunning                 // planned before: Blocks are appended to the table
	KindResumed                 // planned before, preempted since: Blocks replaces the table
)

// String returns the kind's word in transcripts.
func (k Kind) String() string {
	switch k {
	case KindNew:
		return "new"
	case KindRunning:
		return "running"
	case KindResumed:
		return "resumed"
	}
	return "unknown"
}

// Plan is one step: what to compute, and what changed since the last plan. All its slices are the scheduler's and are
// used again: a Plan is valid until its StepDone was applied or, if it has no requests, until the next call of Schedule;
// the views in it (Tokens, Blocks) are valid until the next call of Apply or Schedule.
type Plan struct {
	Step        uint64    // to be given back in StepDone
	Requests    []Planned // running requests first, then the admitted ones, each in scheduling order
	TotalTokens int       // Σ N
	Preempted   []RequestID
	Finished    []RequestID // ended since the last plan: the executor may forget them
	Loads       []Load
	Evicted     []kv.Eviction // with a Connector: blocks whose content this step, or its loads, will overwrite
	Changes     []Change      // what Schedule did, as Apply returns it for events

	eventsBefore uint64 // KV events recorded before this plan was made
}

// Planned is one request's part of a step: compute tokens [From, From+N).
type Planned struct {
	ID     RequestID
	Kind   Kind
	From   int     // tokens computed before
	N      int     // tokens to compute
	Tokens []int32 // their ids, as far as known: shorter than N only under asynchronous scheduling and by the drafts
	Drafts []int32 // drafts to verify: the last of the N tokens
	// Blocks of the first cache group: the whole table if new or resumed, else the blocks added in this step.
	Blocks []kv.BlockID
	// MoreBlocks are the same for the further groups of a model that has several; nil otherwise.
	MoreBlocks [][]kv.BlockID
	Sample     bool // the last token is the last known one: sample
	Outputs    int  // output tokens known or in flight before this step
	Priority   int

	r          *request
	registered int // leading blocks that were computed and registered before this step
	epoch      Epoch
}

// Idle tells whether the plan computes nothing, so that there is no step to execute and no StepDone to give back.
func (p *Plan) Idle() bool { return len(p.Requests) == 0 }

// reset empties the plan for a new step, keeping its memory.
func (p *Plan) reset(step uint64) {
	*p = Plan{
		Step: step, Requests: p.Requests[:0], Preempted: p.Preempted[:0], Finished: p.Finished[:0],
		Loads: p.Loads[:0], Evicted: p.Evicted[:0], Changes: p.Changes[:0],
	}
}

// spareTables returns the memory of MoreBlocks that the next request to be planned may use.
func (p *Plan) spareTables() [][]kv.BlockID {
	if n := len(p.Requests); n < cap(p.Requests) {
		return p.Requests[:n+1][n].MoreBlocks[:0]
	}
	return nil
}

// drop takes the i-th request out of the plan: all there is to undo in it.
func (p *Plan) drop(i int) {
	p.TotalTokens -= p.Requests[i].N
	p.Requests[i].r.planned = -1
	p.Requests = append(p.Requests[:i], p.Requests[i+1:]...)
	p.Requests[:len(p.Requests)+1][len(p.Requests)].MoreBlocks = nil // its memory is that of the one before
	for j := i; j < len(p.Requests); j++ {
		p.Requests[j].r.planned = j
	}
}
