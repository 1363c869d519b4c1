package sched

import (
	"fmt"

	"github.com/quire-ai/quire/kv"
)

// Lookups counts prefix lookups, once for each admission.
type Lookups struct {
	Requests uint64
	Queried  uint64 // tokens asked for
	Hit      uint64 // tokens found
}

func (l *Lookups) add(queried, hit int) {
	l.Requests++
	l.Queried += uint64(queried)
	l.Hit += uint64(hit)
}

// Counters only ever grow.
type Counters struct {
	Steps            uint64 // plans made
	ScheduledTokens  uint64 // tokens planned
	RecomputedTokens uint64 // of those, tokens that had been computed before a preemption
	GeneratedTokens  uint64
	Preemptions      uint64
	Refused          uint64
	Finished         [ReasonCacheThreshold + 1]uint64 // by Reason

	Prefix            Lookups // local prefix cache, first admissions
	PrefixPreempted   Lookups // and admissions after a preemption
	External          Lookups // the connector, first admissions
	ExternalPreempted Lookups
}

func (c *Counters) prefix(preempted bool) *Lookups {
	if preempted {
		return &c.PrefixPreempted
	}
	return &c.Prefix
}

func (c *Counters) external(preempted bool) *Lookups {
	if preempted {
		return &c.ExternalPreempted
	}
	return &c.External
}

// Stats is the state of the moment, and the counters.
type Stats struct {
	Counters
	Running      int
	Waiting      int // waiting for capacity
	Deferred     int // waiting for something else: a load, a grammar, an adapter's turn
	FreeBlocks   int
	UsableBlocks int
	CachedKeys   int // distinct block hashes in the prefix cache
}

// Stats returns the state of the moment.
func (s *Scheduler) Stats() Stats {
	return Stats{
		Counters: s.counters, Running: len(s.running), Waiting: s.waiting.len(), Deferred: s.deferred.len(),
		FreeBlocks: s.cache.Pool().Free(), UsableBlocks: s.cache.Pool().Usable(), CachedKeys: s.cache.Pool().Keys(),
	}
}

// View is what can be seen of a live request.
type View struct {
	ID          RequestID
	State       State
	Epoch       Epoch
	Computed    int // tokens
	Known       int // tokens, prompt and output
	Outputs     int
	Preemptions int
	Blocks      int     // blocks held, over all groups
	Cached      int     // prompt tokens found computed at the first admission; 0 before
	Since       float64 // when it came into its state, by the clock handed to Schedule
}

func (s *Scheduler) view(r *request) View {
	v := View{
		ID: r.ID, State: r.state, Epoch: r.epoch, Computed: r.computed, Known: len(r.tokens), Outputs: r.outputs(),
		Preemptions: r.preemptions, Cached: max(r.cached, 0), Since: r.since,
	}
	for g := range s.cache.Groups() {
		v.Blocks += r.table.Len(g)
	}
	return v
}

// Request returns the view of a live request: one not finished, or finished with blocks still in a transfer.
func (s *Scheduler) Request(id RequestID) (View, bool) {
	r := s.requests[id]
	if r == nil {
		return View{}, false
	}
	return s.view(r), true
}

// Requests yields all live requests in order of arrival.
func (s *Scheduler) Requests(yield func(View) bool) {
	for r := s.allFirst; r != nil; r = r.allNext {
		if !yield(s.view(r)) {
			return
		}
	}
}

// Running yields the running requests in order of admission.
func (s *Scheduler) Running(yield func(RequestID) bool) {
	for _, r := range s.running {
		if !yield(r.ID) {
			return
		}
	}
}

// Waiting yields the requests that wait for capacity, in the order in which they will be considered.
func (s *Scheduler) Waiting(yield func(RequestID) bool) { s.waiting.ids(yield) }

// Deferred yields the requests that wait for something else (a load, a grammar, an adapter's turn), or did when they
// were last considered, in the order in which they will be considered.
func (s *Scheduler) Deferred(yield func(RequestID) bool) { s.deferred.ids(yield) }

// CommonPrefixBlocks returns, for each cache group, how many leading blocks of the first running request are shared by
// every request that holds blocks: a hint for attention kernels that compute a common prefix once. Sliding-window
// groups count as 0.
func (s *Scheduler) CommonPrefixBlocks() []int {
	common := make([]int, s.cache.Groups())
	if len(s.running) == 0 || s.cfg.NoPrefixCaching {
		return common
	}
	holders := 0
	for r := s.allFirst; r != nil; r = r.allNext {
		if !r.table.Empty() {
			holders++
		}
	}
	for g := range common {
		if g < len(s.cfg.Groups) && s.cfg.Groups[g].Window > 0 {
			continue
		}
		for _, b := range s.running[0].table.Blocks(g, 0) {
			if s.cache.Pool().Refs(b) != holders {
				break
			}
			common[g]++
		}
	}
	return common
}

// AppendEvents appends the KV events of the steps that have retired to dst and forgets them. A block is announced only once
// the step that computes it is done.
func (s *Scheduler) AppendEvents(dst []kv.Event) []kv.Event {
	n := len(s.cache.Events())
	if len(s.inFlight) > 0 {
		n = min(n, max(0, int(s.inFlight[0].eventsBefore-s.eventsTaken)))
	}
	dst = append(dst, s.cache.Events()[:n]...)
	s.cache.DropEvents(n)
	s.eventsTaken += uint64(n)
	return dst
}

// PendingEvents returns the KV events that AppendEvents holds back, those of steps in flight: a view, valid until the next
// call of Apply, Schedule or AppendEvents.
func (s *Scheduler) PendingEvents() []kv.Event {
	return s.cache.Events()
}

// boundEvents gives up events that nobody takes. A step records a few for each of its blocks, so looking once a step bounds
// them.
func (s *Scheduler) boundEvents() {
	const most = 1 << 14
	if n := len(s.cache.Events()); n > most {
		s.cache.LoseEvents()
		s.eventsTaken += uint64(n - 1) // what stands in their place is the last of them
	}
}

// Pool returns the block pool, for reading.
func (s *Scheduler) Pool() *kv.Pool { return s.cache.Pool() }

// Explanation says what the request that would be admitted next is waiting for.
type Explanation struct {
	Head  RequestID // empty if nothing waits
	Why   string
	Since float64 // when it came into its state, by the clock handed to Schedule
}

// Explain names the head of the queues and why it waits, for health answers and logs.
func (s *Scheduler) Explain() Explanation {
	q := s.nextQueue()
	if q == nil {
		return Explanation{}
	}
	r := q.head()
	e := Explanation{Head: r.ID, Since: r.since}
	need := s.cache.Need(kv.Demand{Table: &r.table, Computed: r.computed, Tokens: len(r.tokens), Whole: true})
	switch {
	case s.pause != Unpaused:
		e.Why = "the scheduler is paused"
	case r.state == WaitingForRemoteKVs && r.load.inFlight():
		e.Why = "its external KV is being loaded"
	case r.state == WaitingForGrammar:
		e.Why = "its grammar is being compiled"
	case r.stale > 0:
		e.Why = "tokens of its last life are in flight"
	case len(s.running) >= s.cfg.MaxNumSeqs:
		e.Why = fmt.Sprintf("%d of %d requests are running", len(s.running), s.cfg.MaxNumSeqs)
	case need > s.cache.Pool().Free():
		e.Why = fmt.Sprintf("it needs %d blocks of which %d are free", need, s.cache.Pool().Free())
	default:
		e.Why = "its turn comes with the next step"
	}
	return e
}
