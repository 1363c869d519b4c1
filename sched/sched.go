package sched

import (
	"fmt"

	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/kv"
)

// Scheduler decides which tokens of which request are computed next. It belongs to one caller, who alternates Apply
// and Schedule; see the package comment. Nothing in it is safe for concurrent use.
type Scheduler struct {
	cfg       Config
	poolMax   int // most tokens of a request that fit the empty cache
	limit     int // most tokens of a request: the model's length, or poolMax and one that needs no slot
	watermark int // blocks
	cache     *kv.Cache
	counters  Counters
	pause     PauseLevel
	now       float64 // as handed to the last Schedule

	// Live requests, by id and in order of arrival. Each is in exactly the place that its state names (invariant 4): running,
	// or one of the queues, or, while a pass is under way, skip.
	requests          map[RequestID]*request
	allFirst, allLast *request
	nextSeq           uint64
	running           []*request // in admission order
	waiting           queue      // for capacity
	deferred          queue      // parked or passed over: looked at before waiting
	skip              []*request // passed over in this step's waiting pass

	// Steps. Plans are a ring; those with requests stay in flight until they are returned.
	step     uint64 // number of the last plan
	plans    []Plan // depth+1
	slot     int    // of plans, to be filled next: only plans with requests take one
	inFlight []*Plan
	fence    fence

	// To be reported with the next plan, or settled with the end of the next step.
	finished      []RequestID
	preempted     []RequestID // by resets and failed rows
	failedGrammar []*request
	spoiled       []*request // requests some of whose blocks turned out bad
	filled        []Filled   // by the step that the last Apply retired
	eventsTaken   uint64     // KV events handed out

	// The plan being built.
	plan           *Plan
	budget         int // tokens left
	loras          []string
	short          bool // the running pass ran out of blocks: nobody is admitted in this step
	askedToWait    bool // the connector answered "ask later"
	prefillPlanned bool // a running request that was still in its prompt is in the plan
	decodesOnly    bool // the running pass planned something, and nothing that was still in its prompt
	recovering     bool // the pass that recover runs

	// Memory that is used again.
	changes []Change   // being recorded, for the plan or the event at hand
	applied []Change   // those of the last event
	ending  []*request // scratch of settle
	padding []int32    // drafts that only the executor knows
	refs    []int32    // scratch of Audit
}

// New returns an idle scheduler. The configuration must be valid; it panics otherwise.
func New(cfg Config) *Scheduler {
	err := cfg.Validate()
	invariant.Check(err == nil, "scheduler configuration: %v", err)
	s := &Scheduler{
		cfg:       cfg,
		cache:     kv.NewCache(cfg.cacheConfig()),
		requests:  make(map[RequestID]*request),
		waiting:   queue{byPriority: cfg.Policy == Priority},
		deferred:  queue{byPriority: cfg.Policy == Priority},
		plans:     make([]Plan, cfg.depth()+1),
		watermark: int(cfg.Watermark * float64(cfg.Blocks+1)),
	}
	for range cfg.SpecTokens {
		s.padding = append(s.padding, -1)
	}
	s.poolMax = s.longestFit()
	s.limit = min(cfg.MaxModelLen, s.poolMax+1)
	return s
}

// longestFit returns the most tokens one request can hold in the empty cache, at most MaxModelLen.
func (s *Scheduler) longestFit() int {
	low, high := 0, s.cfg.MaxModelLen
	for low < high {
		mid := (low + high + 1) / 2
		if s.cache.FitsEmpty(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// MaxTokens returns the most tokens, prompt and output, a request can reach: the model's length, or what fits the KV
// cache and one more, since the last output token needs no slot.
func (s *Scheduler) MaxTokens() int { return s.limit }

// Admissible returns nil if a request with a prompt of so many tokens can be served, and otherwise why not. It depends
// on the configuration alone and may be called concurrently with everything else.
func (s *Scheduler) Admissible(promptTokens int) *Refusal {
	switch {
	case promptTokens == 0:
		return &Refusal{Reason: EmptyPrompt}
	case promptTokens > s.cfg.MaxModelLen-1:
		return &Refusal{Reason: ExceedsModelLen, Have: promptTokens, Limit: s.cfg.MaxModelLen - 1}
	case promptTokens > s.poolMax:
		return &Refusal{Reason: ExceedsKVCache, Have: promptTokens, Limit: s.poolMax}
	case s.cfg.NoChunkedPrefill && s.chunkedLen(promptTokens) > s.cfg.MaxNumBatchedTokens:
		return &Refusal{Reason: ExceedsBudget, Have: promptTokens, Limit: s.cfg.MaxNumBatchedTokens}
	}
	return nil
}

// chunkedLen returns n cut by the long-prefill threshold.
func (s *Scheduler) chunkedLen(n int) int {
	if t := s.cfg.LongPrefillThreshold; t > 0 {
		return min(n, t)
	}
	return n
}

// Apply takes in one event and returns what it changed. The slice is valid until the next call of Apply or Schedule.
func (s *Scheduler) Apply(ev Event) []Change {
	s.changes = s.applied[:0]
	s.filled = s.filled[:0]
	switch ev := ev.(type) {
	case *StepDone:
		s.stepDone(ev)
	case StepDone:
		s.stepDone(&ev)
	case AddRequest:
		s.add(ev.Request)
	case Abort:
		s.abort(ev.ID)
	case LoadDone:
		s.loadDone(ev)
	case SendDone:
		s.sendDone(ev)
	case GrammarReady:
		s.grammarReady(ev)
	case ResetPrefixCache:
		s.reset(ev.Running)
	case Pause:
		s.pause = ev.Level
	default:
		panic(fmt.Sprintf("sched: unknown event %T", ev))
	}
	s.audit()
	s.applied = s.changes
	return s.changes
}

// add enters a request, or refuses what can never be served.
func (s *Scheduler) add(spec *Request) {
	refusal := s.Admissible(len(spec.Prompt))
	if _, live := s.requests[spec.ID]; live {
		refusal = &Refusal{Reason: DuplicateID}
	}
	if refusal != nil {
		s.counters.Refused++
		s.changes = append(s.changes, Change{Kind: Refused, ID: spec.ID, Err: refusal})
		return
	}
	r := &request{
		Request: spec, seq: s.nextSeq, cached: -1, planned: -1,
		chain: kv.Chain{LoRA: spec.LoRA, Salt: spec.CacheSalt},
	}
	s.nextSeq++
	r.tokens = spec.Prompt[:len(spec.Prompt):len(spec.Prompt)]
	s.cache.Extend(&r.chain, r.tokens)
	s.requests[r.ID] = r
	s.linkLive(r)
	if spec.Grammar {
		r.grammar = grammarPending
		s.move(r, WaitingForGrammar)
		s.deferred.pushBack(r)
		return
	}
	s.move(r, Waiting)
	s.waiting.pushBack(r)
}

// makeRoom gives an admitted request the memory for its outputs, so that its steps need not allocate. A waiting one costs
// its hashes only.
func (s *Scheduler) makeRoom(r *request) {
	const most = 4096 // outputs to make room for at once; longer answers grow
	room := s.limit - len(r.tokens)
	if r.MaxTokens > 0 {
		room = min(room, len(r.Prompt)+r.MaxTokens-len(r.tokens))
	}
	room = max(0, min(room, most))
	if cap(r.tokens)-len(r.tokens) >= room {
		return
	}
	r.tokens = append(make([]int32, 0, len(r.tokens)+room), r.tokens...)
	blocks := cap(r.tokens)/s.cfg.BlockSize + 1
	if !s.cfg.NoPrefixCaching {
		r.chain.Hashes = append(make([]kv.Hash, 0, blocks), r.chain.Hashes...)
	}
	s.cache.Reserve(&r.table, blocks)
}

// grammarReady notes that a grammar is compiled or faulty; the waiting pass acts on it.
func (s *Scheduler) grammarReady(ev GrammarReady) {
	r := s.requests[ev.ID]
	if r == nil || r.state != WaitingForGrammar || r.grammar != grammarPending {
		s.stale(ev.ID, "no grammar awaited")
		return
	}
	r.grammar = grammarReady
	if ev.Err != "" {
		r.grammar, r.grammarErr = grammarFailed, ev.Err
	}
}

// reset forgets the cached prefixes.
func (s *Scheduler) reset(running bool) {
	if running {
		for len(s.running) > 0 {
			r := s.running[len(s.running)-1]
			s.running = s.running[:len(s.running)-1]
			s.preempted = append(s.preempted, r.ID)
			s.preempt(r)
			r.discardInFlight()
		}
	}
	c := Change{Kind: Reset}
	if !s.cache.Reset() {
		used := s.cache.Pool().Usable() - s.cache.Pool().Free()
		c.Err = fmt.Errorf("%d blocks are in use", used)
	}
	s.changes = append(s.changes, c)
}

// stale records that a completion was ignored.
func (s *Scheduler) stale(id RequestID, why string) {
	s.changes = append(s.changes, Change{Kind: Stale, ID: id, Note: why})
}

func (s *Scheduler) linkLive(r *request) {
	r.allPrev = s.allLast
	if s.allLast != nil {
		s.allLast.allNext = r
	} else {
		s.allFirst = r
	}
	s.allLast = r
}

func (s *Scheduler) unlinkLive(r *request) {
	if r.allPrev != nil {
		r.allPrev.allNext = r.allNext
	} else {
		s.allFirst = r.allNext
	}
	if r.allNext != nil {
		r.allNext.allPrev = r.allPrev
	} else {
		s.allLast = r.allPrev
	}
	r.allPrev, r.allNext = nil, nil
}
