package engine

import (
	"fmt"
	"sync"
	"time"

	"github.com/quire-ai/quire/sched"
)

// Snapshot is the state of the engine after its last step, for metrics, logs and health.
type Snapshot struct {
	sched.Stats
	// Waiting is the number of requests that wait, those that the loop has not seen yet included.
	Waiting int
	// Live is the number of accepted requests that have not ended.
	Live int
	// ComputedTokens counts tokens computed, prompts and outputs.
	ComputedTokens uint64
	// FailedSteps counts steps that ended in an error.
	FailedSteps uint64
	// Step is the number of the last step.
	Step uint64
}

// Health is what a probe wants to know. The states exclude each other; the first that holds is given.
type Health struct {
	Status Status    `json:"status"`
	Since  time.Time `json:"since,omitzero"` // of the last token computed, when stalled; of the failure, when failed
	Head   string    `json:"head,omitempty"` // the request that waits longest
	Why    string    `json:"why,omitempty"`
}

// Status is the word for a state of health.
type Status string

const (
	// Failed: the loop has ended by a fault; nothing will be served.
	Failed Status = "failed"
	// Failing: the last steps all ended in errors.
	Failing Status = "failing"
	// Stalled: work waits and no token was computed for Config.StallAfter.
	Stalled Status = "stalled"
	// Paused: requests are accepted and wait, as Pause asked.
	Paused Status = "paused"
	// Draining: running requests are finished, new ones refused.
	Draining Status = "draining"
	// OK: requests are served.
	OK Status = "ok"
)

// failingAfter is the number of failed steps in a row after which Health says failing.
const failingAfter = 3

// status is what the loop publishes after each step.
type status struct {
	mu       sync.Mutex // guards what follows; held for copies only
	snapshot Snapshot
	moved    time.Time // when a token was computed last, or work began
	began    time.Time // of the step in hand; zero between steps
	step     uint64    // its number
	tokens   int       // it computes
	failures int       // failed steps in a row
	lastErr  error     // of these
	head     sched.Explanation
	failure  *FailedError
	failedAt time.Time
	paused   bool
}

func (s *status) init(e *Engine) {
	s.snapshot.Stats = e.sched.Stats()
	s.moved = e.start
}

// workBegins notes that an idle engine got a request.
func (s *status) workBegins(now time.Time) {
	s.mu.Lock()
	s.moved = now
	s.mu.Unlock()
}

// pause notes that a pause begins or ends.
func (s *status) pause(paused bool, now time.Time) {
	s.mu.Lock()
	s.paused, s.moved = paused, now
	s.mu.Unlock()
}

// publish shows the scheduler's state of the moment.
func (s *status) publish(stats sched.Stats) {
	s.mu.Lock()
	s.snapshot.Stats = stats
	s.mu.Unlock()
}

// stepping notes that a step begins.
func (s *status) stepping(now time.Time, plan *sched.Plan) {
	s.mu.Lock()
	s.began, s.step, s.tokens = now, plan.Step, plan.TotalTokens
	s.mu.Unlock()
}

// stepped notes that a step has ended.
func (s *status) stepped(l *loop, info *StepInfo) {
	stats := l.e.sched.Stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot.Stats = stats
	s.began = time.Time{}
	s.snapshot.Step = info.Step
	s.head = sched.Explanation{}
	if info.Err != nil {
		s.snapshot.FailedSteps++
		s.failures++
		s.lastErr = info.Err
		return
	}
	s.failures = 0
	s.snapshot.ComputedTokens += uint64(info.Tokens)
	s.moved = l.now
}

// parked notes that the loop has nothing to run. If requests wait all the same, it notes what for.
func (s *status) parked(l *loop) {
	stats := l.e.sched.Stats()
	var head sched.Explanation
	if stats.Waiting+stats.Deferred+stats.Running > 0 {
		head = l.e.sched.Explain()
	}
	s.mu.Lock()
	s.snapshot.Stats = stats
	s.head = head
	s.mu.Unlock()
}

func (s *status) failed(err *FailedError) {
	s.mu.Lock()
	s.failure, s.failedAt = err, time.Now()
	s.mu.Unlock()
}

// Snapshot returns the state after the last step.
func (e *Engine) Snapshot() Snapshot {
	e.mu.Lock()
	live := e.live
	e.mu.Unlock()
	e.status.mu.Lock()
	defer e.status.mu.Unlock()
	s := e.status.snapshot
	s.Live = live
	s.Waiting = max(0, live-s.Running)
	return s
}

// Health judges the engine by its progress.
func (e *Engine) Health() Health {
	now := time.Now()
	e.mu.Lock()
	live, closing := e.live, e.closing
	e.mu.Unlock()
	s := &e.status
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failure != nil:
		return Health{Status: Failed, Since: s.failedAt, Why: s.failure.Error()}
	case s.failures >= failingAfter:
		return Health{Status: Failing, Since: s.moved, Why: fmt.Sprintf("the last %d steps failed: %v", s.failures, s.lastErr)}
	case s.paused && s.began.IsZero():
		return Health{Status: Paused, Since: s.moved}
	case live > 0 && now.Sub(s.moved) > e.cfg.StallAfter+s.allowance():
		return s.stalled(now)
	case closing != nil:
		return Health{Status: Draining, Why: closing.Error()}
	}
	return Health{Status: OK}
}

// tokenAllowance is the time in which a token of a step in hand may be computed beside Config.StallAfter: a long prefill on
// a slow machine is no stall, and plain Go on one core is not slower.
const tokenAllowance = 250 * time.Millisecond

func (s *status) allowance() time.Duration {
	if s.began.IsZero() {
		return 0
	}
	return time.Duration(s.tokens) * tokenAllowance
}

func (s *status) stalled(now time.Time) Health {
	h := Health{Status: Stalled, Since: s.moved, Head: string(s.head.Head), Why: s.head.Why}
	if !s.began.IsZero() {
		h.Why = fmt.Sprintf("step %d has been running for %v", s.step, now.Sub(s.began).Round(time.Second))
	}
	return h
}

// Live reports whether the loop turns: false from a fault or Close on.
func (e *Engine) Live() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closing == nil || e.closing == ErrDraining
}

// Ready reports whether requests are accepted and served.
func (e *Engine) Ready() bool {
	e.mu.Lock()
	open := e.closing == nil
	e.mu.Unlock()
	return open && !e.Paused()
}

// Done is closed when the loop has ended, by Close or by a fault.
func (e *Engine) Done() <-chan struct{} { return e.done }
