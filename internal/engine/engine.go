package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quire-ai/quire/internal/record"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// Executor computes plans. The loop is its only caller. What Execute returns has one entry for each planned request, in
// plan order, and is read before the next call.
type Executor interface {
	// Begin introduces a request before its first plan. Plan.Finished ends what Begin began.
	Begin(id sched.RequestID, p *sample.Params, prompt []int32)
	// Execute computes a plan. Its error fails every request of the plan.
	Execute(p *sched.Plan) ([]sample.Output, error)
	// Close releases the executor's memory; nothing is called after it.
	Close() error
}

// Connector moves KV between the pool and the tiers behind it. The loop calls its methods, and none may wait; Close is called
// once the loop has ended, and afterwards nobody but the executor touches the pool's memory.
type Connector interface {
	sched.Connector
	// Start is called once, before all else. wake may be called by any goroutine when Done has something.
	Start(wake func())
	// Begin is called before each plan is executed: it copies what the plan evicts and begins the plan's loads. One that is
	// not asynchronous has ended when Begin returns; each other ends in exactly one LoadDone, within bounded time.
	Begin(p *sched.Plan)
	// Done appends the loads that have ended since it was called last.
	Done(dst []sched.LoadDone) []sched.LoadDone
	// Filled offers what a step completed, before the next one is planned.
	Filled(filled []sched.Filled)
	// Computed tells how long a step took that computed so many tokens.
	Computed(tokens int, d time.Duration)
	// AppendEvents appends what memory behind the pool gained and lost since it was called last.
	AppendEvents(dst []kv.Event) []kv.Event
	Close() error
}

// Config is the shape of an engine. It is read once, by New.
type Config struct {
	Sched sched.Config
	// Connector is nil for a KV cache that ends with the pool. The engine owns it from New on.
	Connector Connector
	// Vocab is the number of logits in a row of the executor.
	Vocab int
	// MaxQueuedRequests is the most requests that wait for their first step; more are refused. 0 means 8192.
	MaxQueuedRequests int
	// MaxQueuedTokens is the most prompt tokens of these; 0 means 16 Mi (64 MiB of ids).
	MaxQueuedTokens int
	// StallAfter is how long work may wait without a token being computed before Health says stalled; 0 means a minute. A
	// step in hand has a quarter of a second more for each of its tokens.
	StallAfter time.Duration
	// LogInterval is the time between lines about throughput while there is work; 0 means ten seconds, negative none.
	LogInterval time.Duration
	Observer    Observer
	// Record, if not nil, is given a record of all that the scheduler is told and decides (package record). Writing it is
	// the loop's work, so it should be a file.
	Record io.Writer
	// Log may be nil.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&c.MaxQueuedRequests, 8192)
	set(&c.MaxQueuedTokens, 16<<20)
	if c.StallAfter == 0 {
		c.StallAfter = time.Minute
	}
	if c.LogInterval == 0 {
		c.LogInterval = 10 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Engine serves requests. Its methods may be called by any goroutine. Close ends it.
type Engine struct {
	cfg   Config
	exec  Executor
	sched *record.Scheduler // owned by the loop, but for Admissible and MaxTokens
	start time.Time         // the clock of the scheduler begins here

	loop loop
	wake chan struct{} // capacity 1; filled when the inbox has something or the engine closes
	busy chan struct{} // capacity 1; filled when work begins, for the reporter
	done chan struct{} // closed when the loop has ended
	rest sync.WaitGroup

	mu      sync.Mutex // guards what follows
	inbox   inbox
	next    uint64 // number of the next request
	live    int    // requests that have not ended
	queued  load   // of these, waiting for their first step
	drained []chan struct{}
	closing error // why no request is accepted, nil while they are
	closed  bool
	status  status
}

// load is an amount of waiting work.
type load struct{ requests, tokens int }

// inbox is what clients asked since the loop looked last.
type inbox struct {
	adds   []*Handle
	aborts []*Handle
	calls  []func()
}

// New starts an engine over an executor, which it owns from now on. The scheduler's configuration must be valid.
func New(cfg Config, ex Executor) *Engine {
	if cfg.Connector != nil {
		cfg.Sched.Connector = cfg.Connector
	}
	cfg.Sched.KVEvents = cfg.Observer.KVEvents != nil
	e := &Engine{
		cfg: cfg.withDefaults(), exec: ex, sched: record.New(cfg.Sched, cfg.Record), start: time.Now(),
		wake: make(chan struct{}, 1), busy: make(chan struct{}, 1), done: make(chan struct{}),
	}
	e.loop.init(e)
	if cfg.Connector != nil {
		cfg.Connector.Start(e.poke)
	}
	e.status.init(e)
	e.rest.Go(e.loop.run)
	if e.cfg.LogInterval > 0 {
		e.rest.Go(func() { report(e) })
	}
	return e
}

// MaxTokens returns the most tokens, prompt and output, that a request can reach: the context, or what fits the KV cache.
func (e *Engine) MaxTokens() int { return e.sched.MaxTokens() }

// CacheGroups returns the cache groups of the model; empty is one that keeps the whole context.
func (e *Engine) CacheGroups() []kv.Group { return e.cfg.Sched.Groups }

// Vocab returns the number of token ids the executor knows.
func (e *Engine) Vocab() int { return e.cfg.Vocab }

// Submit accepts a request or says at once why not: a *TooLongError, *QueueFullError, *sample.ParamError, ErrEmptyPrompt,
// ErrDraining, ErrClosed or *FailedError. When ctx ends the request is aborted, whatever it is doing.
func (e *Engine) Submit(ctx context.Context, r *Request) (*Handle, error) {
	if err := e.admissible(r); err != nil {
		return nil, err
	}
	for i, id := range r.Prompt {
		if id < 0 || int(id) >= e.cfg.Vocab {
			return nil, &sample.ParamError{Param: "prompt", Reason: fmt.Sprintf("token %d is %d, outside the vocabulary of %d", i, id, e.cfg.Vocab)}
		}
	}
	params := r.Sampling
	params.MinTokens = r.MinTokens
	params.StopIDs = slices.Clone(r.StopTokenIDs)
	if !r.IgnoreEOS {
		params.StopIDs = append(params.StopIDs, r.EOS...)
	}
	if err := params.Validate(e.cfg.Vocab); err != nil {
		return nil, err
	}
	h, err := e.accept(r, &params)
	if err != nil {
		return nil, err
	}
	h.watch(ctx)
	e.poke()
	return h, nil
}

// admissible refuses what can never be served.
func (e *Engine) admissible(r *Request) error {
	n := len(r.Prompt)
	if refusal := e.sched.Admissible(n); refusal != nil {
		switch refusal.Reason {
		case sched.EmptyPrompt:
			return ErrEmptyPrompt
		case sched.ExceedsModelLen:
			return &TooLongError{Prompt: n, MaxTokens: 1, Limit: e.cfg.Sched.MaxModelLen, Resource: "context"}
		case sched.ExceedsKVCache:
			return &TooLongError{Prompt: n, Limit: refusal.Limit, Resource: "KV cache"}
		default:
			return refusal
		}
	}
	if limit := e.cfg.Sched.MaxModelLen; n+r.MaxTokens > limit {
		return &TooLongError{Prompt: n, MaxTokens: r.MaxTokens, Limit: limit, Resource: "context"}
	}
	for _, c := range []struct {
		param string
		value int
	}{{"max_tokens", r.MaxTokens}, {"min_tokens", r.MinTokens}} {
		if c.value < 0 {
			return &sample.ParamError{Param: c.param, Reason: "must not be negative, got " + strconv.Itoa(c.value)}
		}
	}
	most, what := r.MaxTokens, "max_tokens"
	if most == 0 {
		most, what = e.MaxTokens()-n, "what the prompt leaves:"
	}
	if r.MinTokens > most {
		return &sample.ParamError{Param: "min_tokens", Reason: fmt.Sprintf("must be at most %s %d, got %d", what, most, r.MinTokens)}
	}
	return nil
}

// accept gives the request a name of its own, counts it and leaves it for the loop.
func (e *Engine) accept(r *Request, params *sample.Params) (*Handle, error) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing != nil {
		return nil, e.closing
	}
	if n := e.queued.requests + 1; n > e.cfg.MaxQueuedRequests {
		return nil, &QueueFullError{What: "requests", Have: n, Limit: e.cfg.MaxQueuedRequests}
	}
	if n := e.queued.tokens + len(r.Prompt); n > e.cfg.MaxQueuedTokens {
		return nil, &QueueFullError{What: "prompt tokens", Have: n, Limit: e.cfg.MaxQueuedTokens}
	}
	e.next++
	req := &sched.Request{
		ID:     sched.RequestID("r" + strconv.FormatUint(e.next, 10)), // x-request-ids may repeat
		Prompt: r.Prompt, MaxTokens: r.MaxTokens, MinTokens: r.MinTokens,
		Priority: r.Priority, Arrival: now.Sub(e.start).Seconds(),
		EOS: r.EOS, IgnoreEOS: r.IgnoreEOS, StopTokenIDs: r.StopTokenIDs,
		CacheSalt: r.CacheSalt, SkipCache: params.PromptLogprobs >= 0, CacheHitThreshold: r.CacheHitThreshold,
	}
	h := newHandle(e, r.ClientID, req, params)
	h.run.arrival = now
	h.queued = true
	e.queued.requests++
	e.queued.tokens += h.promptTokens
	if e.live++; e.live == 1 {
		e.status.workBegins(now)
		select {
		case e.busy <- struct{}{}:
		default:
		}
	}
	e.inbox.adds = append(e.inbox.adds, h)
	return h, nil
}

// abort asks the loop to end a request. A loop that has ended has ended all of them. The request's place in the queue is free
// at once, since the loop may be in a long step; what it did not take in yet keeps no prompt either.
func (e *Engine) abort(h *Handle) {
	if !e.Live() {
		return
	}
	e.mu.Lock()
	if !h.aborting {
		h.aborting = true
		e.unqueue(h)
		if !h.received {
			h.req.Prompt = nil
		}
		e.inbox.aborts = append(e.inbox.aborts, h)
	}
	e.mu.Unlock()
	e.poke()
}

// poke has the loop look at the inbox.
func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// call runs f in the loop, between two steps, and waits for it.
func (e *Engine) call(ctx context.Context, f func()) error {
	ran := make(chan struct{})
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return ErrClosed
	}
	e.inbox.calls = append(e.inbox.calls, func() { f(); close(ran) })
	e.mu.Unlock()
	e.poke()
	select {
	case <-ran:
		return nil
	case <-e.done:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ResetPrefixCache forgets all cached prefixes. It fails while blocks are in use, unless running requests may be
// preempted and computed again.
func (e *Engine) ResetPrefixCache(ctx context.Context, preemptRunning bool) error {
	var failed error
	err := e.call(ctx, func() { failed = e.loop.reset(preemptRunning) })
	if err != nil {
		return err
	}
	return failed
}

// CachedBlocks returns the hashes under which the pool holds blocks, in no order.
func (e *Engine) CachedBlocks(ctx context.Context) ([]kv.Hash, error) {
	var hashes []kv.Hash
	err := e.call(ctx, func() { hashes = e.sched.Pool().AppendHashes(nil) })
	return hashes, err
}

// Drain refuses new requests and waits until every accepted one has ended. If ctx ends first it returns its error, and the
// requests go on; Close ends them.
func (e *Engine) Drain(ctx context.Context) error {
	e.mu.Lock()
	if e.closing == nil {
		e.closing = ErrDraining
	}
	empty := make(chan struct{})
	if e.live == 0 {
		close(empty)
	} else {
		e.drained = append(e.drained, empty)
	}
	e.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends every request with ErrClosed, stops the loop after the step in hand, ends all transfers and closes the
// executor. It may be called more than once.
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	if e.closing == nil || e.closing == ErrDraining {
		e.closing = ErrClosed
	}
	e.mu.Unlock()
	e.poke()
	e.rest.Wait()
	if !first {
		return nil
	}
	var err error
	if e.cfg.Connector != nil {
		err = e.cfg.Connector.Close()
	}
	return errors.Join(err, e.exec.Close())
}
