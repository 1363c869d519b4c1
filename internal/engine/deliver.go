package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/quire-ai/quire/sched"
)

// apply reads what the scheduler did. It may be called several times before deliver.
func (l *loop) apply(changes []sched.Change) {
	debugging := len(changes) > 0 && l.e.cfg.Log.Enabled(context.Background(), slog.LevelDebug)
	for i := range changes {
		c := &changes[i]
		if l.observer.Change != nil {
			l.observer.Change(*c)
		}
		if debugging {
			l.e.cfg.Log.Debug("scheduler", slog.String("change", c.String()))
		}
		h := l.handles[c.ID]
		if h == nil {
			continue
		}
		switch c.Kind {
		case sched.Moved:
			if c.To == sched.Preempted && c.From == sched.Running {
				h.run.preemptions++
			}
		case sched.Emitted:
			h.run.emitted++
			l.touch(h)
		case sched.Finished:
			h.run.finish = h.finished(c)
			if c.Err != nil && h.run.err == nil {
				h.run.err = c.Err
			}
			l.touch(h)
		case sched.Refused: // Submit asks the same question, so this is a fault of Quire
			h.run.finish = &Finish{Reason: sched.ReasonError}
			h.run.err = c.Err
			l.touch(h)
		}
	}
}

// finished says how the request ended. What deliver knows better is filled in there.
func (h *Handle) finished(c *sched.Change) *Finish {
	f := &Finish{Reason: c.Reason}
	if c.Reason == sched.ReasonCacheThreshold {
		h.mu.Lock()
		h.cached = c.Cached
		h.mu.Unlock()
	}
	if c.Stopped {
		f.StopToken = new(c.StopToken)
	}
	return f
}

// touch notes that deliver has something to do for h.
func (l *loop) touch(h *Handle) {
	if !h.run.changed {
		h.run.changed = true
		l.touched = append(l.touched, h)
	}
}

// deliver hands tokens and ends to the requests that have some since it was called last.
func (l *loop) deliver() {
	if len(l.touched) == 0 {
		return
	}
	l.e.status.publish(l.e.sched.Stats()) // before: who sees the end of a request sees its blocks free
	for i, h := range l.touched {
		l.touched[i] = nil
		r := &h.run
		tokens := r.tokens[:r.emitted]
		if len(tokens) > 0 {
			l.timeTokens(h)
			r.outputs += len(tokens)
		}
		r.tokens, r.emitted, r.changed = nil, 0, false
		if r.finish != nil {
			l.end(h, tokens)
			continue
		}
		h.deliver(tokens, nil, nil)
	}
	l.touched = l.touched[:0]
}

// timeTokens notes when the request's tokens of this step came.
func (l *loop) timeTokens(h *Handle) {
	r := &h.run
	if r.first.IsZero() {
		r.first = l.now
		if l.observer.FirstToken != nil {
			l.observer.FirstToken(FirstTokenInfo{
				Wait: l.now.Sub(r.arrival), PromptTokens: h.promptTokens, CachedTokens: h.CachedTokens(),
				LoadedTokens: h.loadedTokens(),
			})
		}
	} else if l.observer.NextToken != nil {
		l.observer.NextToken(l.now.Sub(r.last))
	}
	r.last = l.now
}

// end gives a request its one terminal answer and forgets it.
func (l *loop) end(h *Handle, tokens []Token) {
	r := &h.run
	if r.err != nil {
		r.err = fmt.Errorf("request %s: %w", h.id, r.err)
	}
	r.finish.PromptTokens, r.finish.OutputTokens, r.finish.Preemptions = h.promptTokens, r.outputs, r.preemptions
	r.finish.CachedTokens, r.finish.LoadedTokens = h.CachedTokens(), h.loadedTokens()
	delete(l.handles, h.id)
	if l.observer.Finished != nil {
		l.observer.Finished(FinishInfo{
			ID: string(h.id), ClientID: h.client, Finish: *r.finish, MaxTokens: h.req.MaxTokens, Err: r.err,
			Arrival: r.arrival, Scheduled: r.scheduled, FirstToken: r.first, LastToken: r.last, End: l.now,
		})
	}
	drained := l.e.ended(h)
	h.deliver(tokens, r.finish, r.err)
	for _, empty := range drained {
		close(empty)
	}
}

// endAll ends every request with err, in order of arrival.
func (l *loop) endAll(err error) {
	e := l.e
	e.mu.Lock()
	for _, h := range e.inbox.adds {
		l.handles[h.id] = h
	}
	e.inbox = inbox{}
	e.mu.Unlock()
	var all []*Handle
	for _, h := range l.handles {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *Handle) int { return a.run.arrival.Compare(b.run.arrival) })
	for _, h := range all {
		h.run.finish = &Finish{Reason: sched.ReasonAbort}
		h.run.err = err
		l.end(h, nil)
	}
}

// fail ends everything after a panic.
func (l *loop) fail(err *FailedError) {
	e := l.e
	e.cfg.Log.Error("engine failed", slog.Any("cause", err.Cause), slog.String("stack", string(err.Stack)))
	e.mu.Lock()
	e.closing = err
	e.mu.Unlock()
	e.status.failed(err)
	l.observer = Observer{} // it may be what panicked
	l.endAll(err)
}

// reset forgets all cached prefixes.
func (l *loop) reset(running bool) error {
	var failed error
	changes := l.e.sched.Apply(sched.ResetPrefixCache{Running: running})
	for _, c := range changes {
		if c.Kind == sched.Reset && c.Err != nil {
			failed = fmt.Errorf("%w: %w", ErrCacheInUse, c.Err)
		}
	}
	l.apply(changes)
	return failed
}

// unqueue gives back the request's place among those that wait for their first step, once: it has begun, was abandoned or
// has ended. e.mu is held.
func (e *Engine) unqueue(h *Handle) {
	if h.queued {
		h.queued = false
		e.queued.requests--
		e.queued.tokens -= h.promptTokens
	}
}

// ended notes that a request has had its answer. It returns who waits for there to be no more.
func (e *Engine) ended(h *Handle) (drained []chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unqueue(h)
	if e.live--; e.live > 0 {
		return nil
	}
	drained, e.drained = e.drained, nil
	return drained
}

func (e *Engine) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}
