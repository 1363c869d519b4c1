package engine

import (
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// loop owns the scheduler and the executor. Everything in it belongs to one goroutine.
type loop struct {
	e        *Engine
	handles  map[sched.RequestID]*Handle
	step     sched.StepDone // used again each step
	ids      []int32        // backs the token lists in step
	touched  []*Handle      // of the step in hand, in plan order
	loads    []sched.LoadDone
	events   []kv.Event
	now      time.Time
	observer Observer

	recordEnded bool            // and the log has said so
	still       []chan struct{} // to be closed when nothing runs
}

// progress is the loop's record of a request.
type progress struct {
	arrival   time.Time
	scheduled time.Time
	first     time.Time
	last      time.Time
	begun     bool

	loads       bool // some of its prompt comes from outside the pool
	loadedFrom  int  // tokens before these
	outputs     int
	preemptions int
	tokens      []Token // of the step in hand, from the executor
	emitted     int     // of these, accepted by the scheduler
	finish      *Finish
	err         error
	changed     bool // is in loop.touched
}

func (l *loop) init(e *Engine) {
	l.e = e
	l.observer = e.cfg.Observer
	l.handles = make(map[sched.RequestID]*Handle)
}

// run turns until the engine is closed. A panic, which is a fault of Quire, ends every request with an error.
func (l *loop) run() {
	defer close(l.e.done)
	defer l.flushRecord()
	defer func() {
		if cause := recover(); cause != nil {
			l.fail(&FailedError{Cause: cause, Stack: debug.Stack()})
		}
	}()
	for l.turn() {
	}
}

// turn takes in the inbox and runs one step, or parks. It returns false when the engine is closed.
func (l *loop) turn() bool {
	l.now = time.Now()
	l.receive()
	l.callBack()
	l.deliver()
	if l.e.isClosed() {
		l.endAll(ErrClosed)
		return false
	}
	plan := l.e.sched.Schedule(l.now.Sub(l.e.start).Seconds())
	l.apply(plan.Changes)
	l.deliver()
	l.transfer(plan)
	if plan.Idle() {
		l.announce()
		if len(plan.Finished) > 0 {
			_, err := l.e.exec.Execute(plan) // it has only to forget
			invariant.Check(err == nil, "executor forgets finished requests: %v", err)
		}
		l.e.status.parked(l)
		l.settle()
		l.flushRecord()
		<-l.e.wake
		return true
	}
	l.execute(plan)
	return true
}

// flushRecord brings the record of decisions up to date. A record that cannot be written ends, and says so once.
func (l *loop) flushRecord() {
	if err := l.e.sched.Flush(); err != nil && !l.recordEnded {
		l.recordEnded = true
		l.e.cfg.Log.Error("the record of decisions has ended", slog.Any("error", err))
	}
}

// receive takes in the requests and aborts that came since it was called last. The scheduler never hears of a request that
// came and went in between.
func (l *loop) receive() {
	e := l.e
	e.mu.Lock()
	box := e.inbox
	e.inbox = inbox{calls: box.calls}
	for _, h := range box.adds {
		h.received = !h.aborting
	}
	e.mu.Unlock()
	for _, h := range box.adds {
		l.handles[h.id] = h
		if !h.received {
			h.run.finish = &Finish{Reason: sched.ReasonAbort}
			l.touch(h)
			continue
		}
		l.apply(e.sched.Apply(sched.AddRequest{Request: h.req}))
	}
	for _, h := range box.aborts {
		if h.received && l.handles[h.id] == h {
			l.apply(e.sched.Apply(sched.Abort{ID: h.id}))
		}
	}
	l.loaded() // last: an abort ends a load
}

// transfer begins what a plan has to be moved into and out of the pool before it is executed.
func (l *loop) transfer(plan *sched.Plan) {
	if l.e.cfg.Connector == nil {
		return
	}
	for i := range plan.Loads {
		ld := &plan.Loads[i]
		l.handles[ld.ID].run.loadedFrom = ld.From
		l.handles[ld.ID].run.loads = true
	}
	l.e.cfg.Connector.Begin(plan)
}

// loaded takes in the loads that have ended.
func (l *loop) loaded() {
	if l.e.cfg.Connector == nil {
		return
	}
	l.loads = l.e.cfg.Connector.Done(l.loads[:0])
	for i := range l.loads {
		l.apply(l.e.sched.Apply(l.loads[i]))
	}
}

// callBack runs what is to run between two steps, when nothing is in flight.
func (l *loop) callBack() {
	e := l.e
	e.mu.Lock()
	calls := e.inbox.calls
	e.inbox.calls = nil
	e.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// execute computes a plan and gives the results to the scheduler and the requests.
func (l *loop) execute(plan *sched.Plan) {
	e := l.e
	for i := range plan.Requests {
		l.planned(&plan.Requests[i])
	}
	e.status.stepping(l.now, plan)
	outputs, err := e.exec.Execute(plan)
	start := l.now
	l.now = time.Now()
	info := StepInfo{
		Step: plan.Step, Start: start, Duration: l.now.Sub(start),
		Requests: len(plan.Requests), Tokens: plan.TotalTokens, Err: err,
	}
	if err == nil {
		invariant.Check(len(outputs) == len(plan.Requests), "executor returned %d outputs for %d requests", len(outputs), len(plan.Requests))
	}
	l.collect(plan, outputs, err)
	l.receive() // first, so that the tokens of clients who left meanwhile are dropped
	l.apply(e.sched.Apply(&l.step))
	if c := e.cfg.Connector; c != nil {
		c.Filled(e.sched.Filled())
		c.Computed(plan.TotalTokens, info.Duration)
	}
	for _, h := range l.touched {
		info.Sampled += h.run.emitted
	}
	e.status.stepped(l, &info)
	l.deliver()
	l.announce()
	if l.observer.Step != nil {
		l.observer.Step(info)
	}
}

// announce reports what the caches gained and lost since it was called last: first what memory behind the pool got, so that a
// block on its way there is at no moment said to be nowhere.
func (l *loop) announce() {
	if l.observer.KVEvents == nil {
		return
	}
	l.events = l.events[:0]
	if c := l.e.cfg.Connector; c != nil {
		l.events = c.AppendEvents(l.events)
	}
	l.events = l.e.sched.AppendEvents(l.events)
	if len(l.events) > 0 {
		l.observer.KVEvents(l.events)
	}
	clear(l.events)
}

// planned notes that a request is part of the step in hand.
func (l *loop) planned(p *sched.Planned) {
	h := l.handles[p.ID]
	if h.run.begun {
		return
	}
	h.run.begun = true
	h.run.scheduled = l.now
	l.e.exec.Begin(h.id, h.params, h.req.Prompt)
	h.mu.Lock()
	h.cached = p.From
	if h.run.loads {
		h.loaded = max(0, p.From-h.run.loadedFrom)
	}
	h.mu.Unlock()
	l.e.mu.Lock()
	l.e.unqueue(h)
	l.e.mu.Unlock()
}

// collect turns the executor's outputs into the scheduler's event.
func (l *loop) collect(plan *sched.Plan, outputs []sample.Output, err error) {
	l.step.Step, l.step.Outputs, l.step.Err = plan.Step, l.step.Outputs[:0], ""
	l.ids = l.ids[:0]
	if err != nil {
		l.step.Err = err.Error()
		l.e.cfg.Log.Error("step failed", slog.Uint64("step", plan.Step), slog.Int("requests", len(plan.Requests)), slog.Any("error", err))
		return
	}
	for i, out := range outputs {
		h := l.handles[plan.Requests[i].ID]
		if len(out.PromptLogprobs) > 0 {
			h.mu.Lock()
			h.prompt = append(h.prompt, out.PromptLogprobs...)
			h.mu.Unlock()
		}
		row := sched.StepOutput{ID: h.id}
		if out.Err != nil {
			row.Err = out.Err.Error()
			h.run.err = out.Err
		}
		h.run.tokens = out.Sampled
		first := len(l.ids)
		for _, tok := range out.Sampled {
			l.ids = append(l.ids, tok.ID)
		}
		row.Tokens = l.ids[first:]
		if row.Err != "" || len(row.Tokens) > 0 {
			l.step.Outputs = append(l.step.Outputs, row)
		}
	}
}
