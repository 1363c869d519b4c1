package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/sched"
)

// slow makes a step take a second of the test's clock.
func slow(*sched.Plan) error {
	time.Sleep(time.Second)
	return nil
}

// Each mode leaves nothing running; what a pause keeps goes on with the same tokens after it, and no health check takes
// a pause of hours for a stall.
func TestPause(t *testing.T) {
	for name, c := range map[string]struct {
		mode    engine.PauseMode
		aborted bool
		pausing time.Duration // that Pause takes
	}{
		"keep":  {mode: engine.PauseKeep, pausing: time.Second / 2},
		"wait":  {mode: engine.PauseWait, pausing: 8*time.Second - time.Second/2},
		"abort": {mode: engine.PauseAbort, aborted: true, pausing: time.Second / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := greedy(prompt(1, 20), 8), greedy(prompt(2, 20), 3)
				e, _ := newEngine(shape{toy: executortest.Options{Step: slow}})
				defer e.Close()
				running := make(chan result, 1)
				go func() { running <- serve(t.Context(), e, first) }()
				time.Sleep(time.Second / 2)
				start := time.Now()
				if err := e.Pause(t.Context(), c.mode); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != c.pausing {
					t.Errorf("the pause took %v, want %v", took, c.pausing)
				}
				waiting := make(chan result, 1)
				go func() { waiting <- serve(t.Context(), e, second) }()
				time.Sleep(3 * time.Hour)
				if h := e.Health(); h.Status != engine.Paused || e.Ready() || e.Snapshot().Running > 0 && c.mode != engine.PauseKeep {
					t.Errorf("health %+v, ready %t, %d running", h, e.Ready(), e.Snapshot().Running)
				}
				if err := e.Resume(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if h := e.Health(); h.Status != engine.OK || !e.Ready() {
					t.Errorf("health after the pause: %+v, ready %t", h, e.Ready())
				}
				want := alone(first, executortest.Options{})
				if got := <-running; c.aborted && got.finish.Reason != sched.ReasonAbort || !c.aborted && !equal(got, want) {
					t.Errorf("the running request got %+v, alone it gets %+v", got, want)
				}
				if got := <-waiting; !equal(got, alone(second, executortest.Options{})) {
					t.Errorf("the request that came in the pause got %+v", got)
				}
				drained(t, e)
			})
		})
	}
}

// Who gives up waiting for a pause leaves it on.
func TestPauseGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{toy: executortest.Options{Step: slow}})
		defer e.Close()
		go func() { _ = serve(t.Context(), e, greedy(prompt(1, 20), 100)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := e.Pause(ctx, engine.PauseWait); !errors.Is(err, context.DeadlineExceeded) || !e.Paused() {
			t.Errorf("pause: %v, paused %t; want it on, and the deadline's error", err, e.Paused())
		}
		time.Sleep(200 * time.Second) // the running request ends meanwhile
		if err := e.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		drained(t, e)
	})
}

func equal(a, b result) bool { return a.err == nil && b.err == nil && slices.Equal(a.tokens, b.tokens) }
