package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/quire-ai/quire/sched"
)

// PauseMode says what a pause does with the requests that are there. New ones are accepted and wait.
type PauseMode uint8

const (
	// PauseKeep stops at once: running requests keep their blocks and go on after Resume.
	PauseKeep PauseMode = iota
	// PauseWait lets running requests end first.
	PauseWait
	// PauseAbort ends all requests first.
	PauseAbort
)

// Pause stops serving until Resume, so that nothing runs when it returns. If ctx ends before the running requests
// have, under PauseWait, the pause stays and its error is returned.
func (e *Engine) Pause(ctx context.Context, mode PauseMode) error {
	still := make(chan struct{})
	err := e.call(ctx, func() {
		if mode == PauseAbort {
			e.loop.abortAll()
		}
		level := sched.PausedNew
		if mode == PauseKeep {
			level = sched.PausedAll
		}
		e.loop.pause(level)
		e.loop.still = append(e.loop.still, still)
	})
	if err != nil {
		return err
	}
	select {
	case <-still:
		return nil
	case <-e.done:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Resume ends a pause.
func (e *Engine) Resume(ctx context.Context) error {
	return e.call(ctx, func() { e.loop.pause(sched.Unpaused) })
}

// Paused tells whether a pause is on.
func (e *Engine) Paused() bool {
	e.status.mu.Lock()
	defer e.status.mu.Unlock()
	return e.status.paused
}

// pause sets the scheduler's level. The time of a pause does not count as one in which nothing moved.
func (l *loop) pause(level sched.PauseLevel) {
	l.apply(l.e.sched.Apply(sched.Pause{Level: level}))
	l.e.status.pause(level != sched.Unpaused, l.now)
}

// abortAll ends all requests, in an order that is the same each time.
func (l *loop) abortAll() {
	ids := make([]sched.RequestID, 0, len(l.handles))
	for id := range l.handles {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b sched.RequestID) int { return strings.Compare(string(a), string(b)) })
	for _, id := range ids {
		l.apply(l.e.sched.Apply(sched.Abort{ID: id}))
	}
}

// settle tells those who pause that nothing runs.
func (l *loop) settle() {
	for _, still := range l.still {
		close(still)
	}
	l.still = nil
}
