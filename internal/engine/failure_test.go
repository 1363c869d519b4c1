package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/sched"
)

// A row that fails ends its request; the others have the text they have alone, also those that share its blocks.
func TestOneRowFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := prompt(7, 64)
		requests := each(8, func(i int) *engine.Request { return greedy(append(slices.Clone(shared), prompt(i, 20)...), 30) })
		want := each(8, func(i int) result { return alone(requests[i], executortest.Options{}) })
		for _, output := range []int{0, 1, 10, 29} {
			for _, budget := range []int{16, 100, 1000} { // the failing rows are a chunk of prefill, or all of it
				e, _ := newEngine(shape{budget: budget, toy: executortest.Options{Row: executortest.FailRow("r3", output)}})
				for i, got := range serveAll(t.Context(), e, requests) {
					if i == 2 { // r3
						if got.err == nil || len(got.tokens) != output {
							t.Errorf("the failing request: %d tokens, %v; want %d and an error", len(got.tokens), got.err, output)
						}
						continue
					}
					if !slices.Equal(got.tokens, want[i].tokens) {
						t.Errorf("output %d budget %d: request %d was touched: %d tokens, %v", output, budget, i, len(got.tokens), got.err)
					}
				}
				drained(t, e)
				e.Close()
			}
		}
	})
}

// A row fails in its first chunk of prefill, which others of the same step share.
func TestFirstChunkFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := prompt(7, 64)
		requests := each(4, func(i int) *engine.Request { return greedy(append(slices.Clone(shared), prompt(i, 20)...), 10) })
		want := each(4, func(i int) result { return alone(requests[i], executortest.Options{}) })
		e, _ := newEngine(shape{toy: executortest.Options{Row: func(p *sched.Planned) error {
			if p.ID == "r1" {
				return errors.New("no")
			}
			return nil
		}}})
		defer e.Close()
		for i, got := range serveAll(t.Context(), e, requests) {
			if i > 0 && !slices.Equal(got.tokens, want[i].tokens) {
				t.Errorf("request %d was touched: %d tokens, %v", i, len(got.tokens), got.err)
			}
		}
		drained(t, e)
	})
}

// A step that fails ends the requests in it with the error; those that wait are served, and nothing reads its blocks.
func TestOneStepFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := each(8, func(i int) *engine.Request { return greedy(prompt(i%4, 40), 20) })
		want := each(8, func(i int) result { return alone(requests[i], executortest.Options{}) })
		broken := errors.New("out of luck")
		steps := 0
		e, _ := newEngine(shape{seqs: 4, toy: executortest.Options{Step: func(*sched.Plan) error {
			if steps++; steps == 3 {
				return broken
			}
			return nil
		}}})
		defer e.Close()
		failed := 0
		for i, got := range serveAll(t.Context(), e, requests) {
			if got.err != nil {
				failed++
				if !strings.Contains(got.err.Error(), "out of luck") {
					t.Errorf("request %d: %v", i, got.err)
				}
				continue
			}
			if !slices.Equal(got.tokens, want[i].tokens) {
				t.Errorf("request %d was touched", i)
			}
		}
		if failed == 0 || failed > 4 {
			t.Errorf("%d requests failed; want those of one step", failed)
		}
		if n := e.Snapshot().FailedSteps; n != 1 {
			t.Errorf("%d failed steps counted; want 1", n)
		}
		drained(t, e)
	})
}

// Steps that all fail are a sick engine, though each request gets its answer.
func TestAllStepsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick := true
		e, _ := newEngine(shape{toy: executortest.Options{Step: func(*sched.Plan) error {
			if sick {
				return errors.New("no device")
			}
			return nil
		}}})
		defer e.Close()
		for i := range 3 {
			if got := serve(t.Context(), e, greedy(prompt(i, 10), 5)); got.err == nil {
				t.Errorf("request %d: no error", i)
			}
		}
		if h := e.Health(); h.Status != engine.Failing || !strings.Contains(h.Why, "no device") {
			t.Errorf("health %+v; want failing, no device", h)
		}
		sick = false
		if got := serve(t.Context(), e, greedy(prompt(1, 10), 5)); got.err != nil {
			t.Error(got.err)
		}
		drained(t, e)
	})
}

// A fault of Quire in the loop is not swallowed and leaves nobody waiting.
func TestPanicEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := 0
		e, _ := newEngine(shape{seqs: 2, toy: executortest.Options{Step: func(*sched.Plan) error {
			if steps++; steps == 4 {
				panic("a fault")
			}
			return nil
		}}})
		for i, got := range serveAll(t.Context(), e, each(5, func(i int) *engine.Request { return greedy(prompt(i, 10), 20) })) {
			if fault, ok := errors.AsType[*engine.FailedError](got.err); !ok || fault.Cause != "a fault" || len(fault.Stack) == 0 {
				t.Errorf("request %d: %v; want a *FailedError", i, got.err)
			}
		}
		if _, err := e.Submit(t.Context(), greedy(prompt(1, 10), 5)); err == nil || err.Error() != "engine failed: a fault" {
			t.Errorf("Submit after the fault: %v; want engine failed: a fault", err)
		}
		if h := e.Health(); h.Status != engine.Failed || e.Live() || e.Ready() {
			t.Errorf("health %+v, live %t, ready %t; want failed, false, false", h, e.Live(), e.Ready())
		}
		<-e.Done()
		if err := e.Drain(t.Context()); err != nil {
			t.Errorf("Drain: %v", err)
		}
		if err := e.ResetPrefixCache(t.Context(), false); err == nil {
			t.Error("ResetPrefixCache on a failed engine: no error")
		}
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{seqs: 2, toy: executortest.Options{Step: stepTime(10 * time.Millisecond)}})
		answers := make(chan []result)
		go func() {
			answers <- serveAll(t.Context(), e, each(6, func(i int) *engine.Request { return greedy(prompt(i, 10), 20) }))
		}()
		time.Sleep(25 * time.Millisecond)
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := e.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain of 1 ms: %v; want deadline exceeded", err)
		}
		if _, err := e.Submit(t.Context(), greedy(prompt(1, 10), 5)); !errors.Is(err, engine.ErrDraining) {
			t.Errorf("Submit while draining: %v; want ErrDraining", err)
		}
		if h := e.Health(); h.Status != engine.Draining || e.Ready() || !e.Live() {
			t.Errorf("health %+v, ready %t, live %t; want draining, false, true", h, e.Ready(), e.Live())
		}
		if err := e.Drain(t.Context()); err != nil {
			t.Errorf("Drain: %v", err)
		}
		for i, got := range <-answers { // waiting ones too
			if len(got.tokens) != 20 {
				t.Errorf("request %d: %d tokens, %v; want 20", i, len(got.tokens), got.err)
			}
		}
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestCloseEndsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{seqs: 2, toy: executortest.Options{Step: stepTime(10 * time.Millisecond)}})
		answers := make(chan []result)
		go func() {
			answers <- serveAll(t.Context(), e, each(6, func(i int) *engine.Request { return greedy(prompt(i, 10), 20) }))
		}()
		time.Sleep(25 * time.Millisecond)
		for range 2 {
			if err := e.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		for i, got := range <-answers {
			if !errors.Is(got.err, engine.ErrClosed) {
				t.Errorf("request %d: %d tokens, %v; want ErrClosed", i, len(got.tokens), got.err)
			}
		}
		if _, err := e.Submit(t.Context(), greedy(prompt(1, 10), 5)); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("Submit: %v; want ErrClosed", err)
		}
	})
}
