package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/sched"
)

// stepTime has each step of a toy take a while of the bubble's clock.
func stepTime(d time.Duration) func(*sched.Plan) error {
	return func(*sched.Plan) error { time.Sleep(d); return nil }
}

// llama.cpp #24496, #11720: the client goes away and generation runs on to the limit, holding its slot.
func TestClientGone24496(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{seqs: 1, blocks: 256, toy: executortest.Options{Step: stepTime(10 * time.Millisecond)}})
		defer e.Close()
		ctx, leave := context.WithCancel(t.Context())
		h, err := e.Submit(ctx, greedy(prompt(1, 10), 2000))
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if _, err := h.Next(ctx); err != nil {
				t.Fatal(err)
			}
		}
		leave()
		synctest.Wait()
		before := e.Snapshot().Step
		got := serve(t.Context(), e, greedy(prompt(2, 10), 5))
		if got.err != nil || len(got.tokens) != 5 {
			t.Fatalf("next request: %d tokens, %v; want 5", len(got.tokens), got.err)
		}
		if n := e.Snapshot().Step - before; n > 7 {
			t.Errorf("next request took %d steps; want 5, and one that was under way", n)
		}
		if f := read(t.Context(), h).finish; f.Reason != sched.ReasonAbort {
			t.Errorf("the request of the client that left ended with %v; want abort", f.Reason)
		}
		drained(t, e)
	})
}

// A client that does not stream reads nothing until the end, so nothing but its context can tell.
func TestSilentClientGone24496(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{seqs: 1, blocks: 256, toy: executortest.Options{Step: stepTime(10 * time.Millisecond)}})
		defer e.Close()
		ctx, leave := context.WithTimeout(t.Context(), 55*time.Millisecond)
		defer leave()
		if _, err := e.Submit(ctx, greedy(prompt(1, 10), 2000)); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		time.Sleep(10 * time.Millisecond) // the step under way
		drained(t, e)
	})
}

// ollama #11889: a cancel during prefill has no effect until the first token.
func TestCancelInPrefill11889(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		chunks := 0
		e, _ := newEngine(shape{blocks: 256, budget: 64, toy: executortest.Options{Step: func(*sched.Plan) error {
			if chunks++; chunks == 3 {
				leave()
				time.Sleep(time.Millisecond) // of the bubble: until the engine was told
			}
			return nil
		}}})
		defer e.Close()
		got := serve(ctx, e, greedy(prompt(1, 50*64), 10))
		if !errors.Is(got.err, context.Canceled) && got.finish.Reason != sched.ReasonAbort {
			t.Errorf("result %+v; want canceled", got)
		}
		time.Sleep(time.Second) // for a chunk that should not come
		drained(t, e)
		if chunks != 3 {
			t.Errorf("%d chunks were computed; want none after the third", chunks)
		}
	})
}

// mistral.rs #2147, #1376: a client that leaves kills the engine's task.
func TestReaderGoneAnywhere2147(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rowErr := errors.New("row fails")
		e, _ := newEngine(shape{seqs: 2, blocks: 16, budget: 32, toy: executortest.Options{
			Step: stepTime(time.Millisecond),
			Row: func(p *sched.Planned) error {
				if p.Outputs == 7 { // some die while their readers leave
					return rowErr
				}
				return nil
			},
		}})
		defer e.Close()
		var clients sync.WaitGroup
		for i := range 1000 {
			clients.Go(func() {
				// From before admission, through prefill and decode, to the row's error and after it.
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(i%40)*500*time.Microsecond)
				defer leave()
				serve(ctx, e, greedy(prompt(i, 60), 10))
			})
			if i%4 == 0 {
				time.Sleep(3 * time.Millisecond)
			}
		}
		clients.Wait()
		time.Sleep(2 * time.Millisecond) // the step under way when the last one left
		drained(t, e)
		if got := serve(t.Context(), e, greedy(prompt(1, 60), 5)); got.err != nil || len(got.tokens) != 5 {
			t.Errorf("after all left: %d tokens, %v; want 5", len(got.tokens), got.err)
		}
	})
}

// Ten thousand requests that nobody reads: each holds at most its tokens, and nothing when it has ended.
func TestAbandonedRequestsHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, toy := newEngine(shape{blocks: 64, seqs: 16})
		defer e.Close()
		ctx, leave := context.WithCancel(t.Context())
		full := 0
		for i := range 10_000 {
			_, err := e.Submit(ctx, greedy(prompt(i, 40), 8))
			if _, ok := errors.AsType[*engine.QueueFullError](err); ok {
				full++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		leave()
		drained(t, e)
		got := serve(t.Context(), e, greedy(prompt(1, 60), 5))
		if got.err != nil || len(got.tokens) != 5 {
			t.Errorf("after all left: %d tokens, %v; want 5", len(got.tokens), got.err)
		}
		synctest.Wait()
		if n := toy.Remembered(); n != 0 {
			t.Errorf("the executor remembers %d requests of the past", n)
		}
		t.Logf("%d were refused: the queue was full", full)
	})
}

// vllm #10583, #15041: two requests with one x-request-id break the engine, or an abort of the old one ends the new one.
func TestSameRequestID10583(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{toy: executortest.Options{Step: stepTime(time.Millisecond)}})
		defer e.Close()
		twin := greedy(prompt(1, 20), 30)
		twin.ClientID = "same"
		want := alone(twin, executortest.Options{})
		for _, got := range serveAll(t.Context(), e, []*engine.Request{twin, twin}) {
			if !slices.Equal(got.tokens, want.tokens) {
				t.Errorf("one of two with the same id got %v, %v; want %v", got.tokens, got.err, want.tokens)
			}
		}
		for range 100 { // abort and send again at once
			old, err := e.Submit(t.Context(), twin)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(1500 * time.Microsecond)
			old.Abort()
			if got := serve(t.Context(), e, twin); !slices.Equal(got.tokens, want.tokens) {
				t.Fatalf("sent again: %v, %v; want %v", got.tokens, got.err, want.tokens)
			}
			old.Abort() // late and twice
		}
		drained(t, e)
	})
}
