package engine_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/sched"
)

// vllm #39734: a request that fits the length limit but not the pool stays first in the queue for ever.
func TestOversizedHead39734(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{blocks: 8, modelLen: 512})
		defer e.Close()
		_, err := e.Submit(t.Context(), greedy(prompt(1, 200), 1))
		if want := "prompt of 200 tokens exceeds the KV cache of 128"; err == nil || err.Error() != want {
			t.Errorf("Submit(200 → 1) error %v; want %s", err, want)
		}
		if _, ok := errors.AsType[*engine.TooLongError](err); !ok {
			t.Errorf("error is a %T; want *TooLongError", err)
		}
		if got := serve(t.Context(), e, greedy(prompt(2, 16), 4)); len(got.tokens) != 4 || e.Snapshot().Step > 10 {
			t.Errorf("16 → 4: %d tokens, %v, after %d steps", len(got.tokens), got.err, e.Snapshot().Step)
		}
		for _, c := range []struct{ prompt, ask, want int }{{128, 1, 1}, {127, 1, 1}, {10, 118, 118}, {10, 119, 119}, {10, 120, 119}} {
			got := serve(t.Context(), e, greedy(prompt(c.prompt, c.prompt), c.ask))
			if len(got.tokens) != c.want || got.finish.Reason != sched.ReasonLength {
				t.Errorf("%d → %d: %d tokens, %v, %v; want %d, length", c.prompt, c.ask, len(got.tokens), got.finish.Reason, got.err, c.want)
			}
		}
		drained(t, e)
	})
}

// Acceptance C7: a request that outgrows the pool alone ends by itself. LocalAI #2258, llama.cpp #4185: it was tried again for
// ever, or nothing else was served afterwards.
func TestOutgrowsThePoolAlone2258(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{blocks: 256})
		defer e.Close()
		got := serve(t.Context(), e, greedy(prompt(1, 4000), 500))
		if got.err != nil || got.finish.Reason != sched.ReasonLength || len(got.tokens) != 97 {
			t.Errorf("4000 → 500 on 4096: %d tokens, %v, %v; want 97, length", len(got.tokens), got.finish.Reason, got.err)
		}
		if n := e.Snapshot().Preemptions; n != 0 {
			t.Errorf("%d preemptions; want 0", n)
		}
		if got := serve(t.Context(), e, greedy(prompt(2, 100), 5)); len(got.tokens) != 5 {
			t.Errorf("next: %d tokens, %v; want 5", len(got.tokens), got.err)
		}
		drained(t, e)
	})
}

// Acceptance C8: the impossible one is refused at once, also while the engine is in a long step, and the others go on.
func TestImpossibleAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := each(29, func(i int) *engine.Request { return greedy(prompt(i, 100), 50) })
		want := each(29, func(i int) result { return alone(requests[i], executortest.Options{}) })
		e, _ := newEngine(shape{blocks: 256, toy: executortest.Options{Step: stepTime(time.Second)}})
		defer e.Close()
		done := make(chan []result)
		go func() { done <- serveAll(t.Context(), e, requests) }()
		time.Sleep(500 * time.Millisecond)
		start := time.Now()
		_, err := e.Submit(t.Context(), greedy(prompt(99, 5000), 1))
		if want := "prompt of 5000 tokens exceeds the KV cache of 4096"; err == nil || err.Error() != want {
			t.Errorf("error %v; want %s", err, want)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("the refusal took %v; want it not to wait for the step", d)
		}
		for i, got := range <-done {
			if !slices.Equal(got.tokens, want[i].tokens) {
				t.Errorf("request %d was touched: %v", i, got.err)
			}
		}
		drained(t, e)
	})
}

// llama.cpp #3969: no limit given, and a model that never ends.
func TestNoLimitGiven3969(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{modelLen: 256})
		defer e.Close()
		got := serve(t.Context(), e, greedy(prompt(1, 10), 0))
		if len(got.tokens) != 246 || got.finish.Reason != sched.ReasonLength {
			t.Errorf("%d tokens, %v, %v; want 246, length", len(got.tokens), got.finish.Reason, got.err)
		}
		drained(t, e)
	})
}

// mistral.rs #1174, #1057: a prompt far too long keeps a core busy, or ends the process.
func TestPromptFarTooLong1174(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{modelLen: 512, blocks: 256})
		defer e.Close()
		_, err := e.Submit(t.Context(), greedy(prompt(1, 8*512), 1))
		if want := "prompt of 4096 tokens and 1 output tokens exceed the context of 512"; err == nil || err.Error() != want {
			t.Errorf("error %v; want %s", err, want)
		}
		_, err = e.Submit(t.Context(), greedy(prompt(1, 500), 13))
		if want := "prompt of 500 tokens and 13 output tokens exceed the context of 512"; err == nil || err.Error() != want {
			t.Errorf("error %v; want %s", err, want)
		}
		drained(t, e)
	})
}

// mistral.rs #1625: with one slot nothing ever runs, since the test was for one more.
func TestOneSlot1625(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, seqs := range []int{1, 2} {
			most := 0
			e, _ := newEngine(shape{seqs: seqs, toy: executortest.Options{Step: func(p *sched.Plan) error {
				most = max(most, len(p.Requests))
				return nil
			}}})
			for i, got := range serveAll(t.Context(), e, each(5, func(i int) *engine.Request { return greedy(prompt(i, 20), 10) })) {
				if len(got.tokens) != 10 {
					t.Errorf("%d slots: request %d got %d tokens, %v", seqs, i, len(got.tokens), got.err)
				}
			}
			drained(t, e)
			e.Close()
			if most != seqs {
				t.Errorf("at most %d requests ran at once; want %d", most, seqs)
			}
		}
	})
}

// mistral.rs #2024: sequences of different length were taken for memory pressure and computed again for ever.
func TestUnlikeLengthsAreNoPressure2024(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{blocks: 256})
		defer e.Close()
		serveAll(t.Context(), e, []*engine.Request{greedy(prompt(1, 120), 200), greedy(prompt(2, 50), 200)})
		s := e.Snapshot()
		if s.Preemptions != 0 || s.ComputedTokens != 120+50+2*199 {
			t.Errorf("%d preemptions, %d tokens computed; want 0, %d", s.Preemptions, s.ComputedTokens, 120+50+2*199)
		}
		drained(t, e)
	})
}

// pegainfer #85: many small requests on a small pool stop after a while, with the API alive.
func TestManySmallRequests85(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{blocks: 30, toy: executortest.Options{Step: stepTime(10 * time.Millisecond)}})
		defer e.Close()
		for i, got := range serveAll(t.Context(), e, each(500, func(i int) *engine.Request { return greedy(prompt(i, 64), 8) })) {
			if len(got.tokens) != 8 {
				t.Fatalf("request %d: %d tokens, %v; want 8", i, len(got.tokens), got.err)
			}
		}
		drained(t, e)
	})
}

// dynamo PR #234: under load a request ends at once with "stop" and no text.
func TestNoEarlyStop234(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{blocks: 128})
		defer e.Close()
		requests := each(200, func(i int) *engine.Request {
			r := greedy(prompt(i, 30), 40)
			r.EOS, r.IgnoreEOS = []int32{0, 1, 2, 3, 4, 5, 6, 7}, true
			return r
		})
		for wave := range slices.Chunk(requests, 32) {
			for i, got := range serveAll(t.Context(), e, wave) {
				if len(got.tokens) != 40 || got.finish.Reason != sched.ReasonLength {
					t.Errorf("request %d: %d tokens, %v, %v; want 40, length", i, len(got.tokens), got.finish.Reason, got.err)
				}
			}
		}
		drained(t, e)
	})
}

func TestQueueLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{seqs: 1, toy: executortest.Options{Step: stepTime(time.Second)}, config: func(c *engine.Config) {
			c.MaxQueuedRequests, c.MaxQueuedTokens = 2, 100
		}})
		defer e.Close()
		submit := func(n int, want string) {
			t.Helper()
			_, err := e.Submit(t.Context(), greedy(prompt(n, n), 2))
			got := ""
			if err != nil {
				got = err.Error()
				if _, ok := errors.AsType[*engine.QueueFullError](err); !ok {
					t.Errorf("error is a %T; want *QueueFullError", err)
				}
			}
			if got != want {
				t.Errorf("Submit(%d tokens) error %q; want %q", n, got, want)
			}
		}
		submit(10, "")
		synctest.Wait() // it runs
		submit(60, "")
		submit(41, "queue is full: 101 prompt tokens would wait, the limit is 100")
		submit(10, "")
		submit(1, "queue is full: 3 requests would wait, the limit is 2")
		time.Sleep(2100 * time.Millisecond) // the first has ended, the second runs
		submit(1, "")
	})
}

// Thousands of clients that come and leave while the loop is in one long step take no place from those who stay: each gave
// its place back when it left.
func TestAbandonedRequestsKeepNoPlaceInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []engine.FinishInfo
		e, _ := newEngine(shape{seqs: 1, toy: executortest.Options{Step: stepTime(time.Second)}, config: func(c *engine.Config) {
			c.MaxQueuedRequests, c.MaxQueuedTokens = 2, 100
			c.Observer.Finished = func(f engine.FinishInfo) { ended = append(ended, f) }
		}})
		defer e.Close()
		submit := func() *engine.Handle {
			t.Helper()
			h, err := e.Submit(t.Context(), greedy(prompt(1, 90), 2))
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		running := submit()
		synctest.Wait() // it runs
		waiting := submit()
		time.Sleep(time.Second) // the scheduler knows it
		waiting.Abort()
		for range 5000 {
			submit().Abort()
		}
		stays := submit()
		for _, c := range []struct {
			h    *engine.Handle
			want sched.Reason
		}{{running, sched.ReasonLength}, {waiting, sched.ReasonAbort}, {stays, sched.ReasonLength}} {
			if got := read(t.Context(), c.h); got.err != nil || got.finish.Reason != c.want || got.finish.PromptTokens != 90 {
				t.Errorf("request %s: %+v, %v; want %v", c.h.ID(), got.finish, got.err, c.want)
			}
		}
		drained(t, e)
		for _, f := range ended {
			if f.PromptTokens != 90 {
				t.Fatalf("request %s ended with %d prompt tokens; want 90", f.ID, f.PromptTokens)
			}
		}
		if len(ended) != 5003 {
			t.Errorf("%d requests ended; want 5003", len(ended))
		}
	})
}

func TestBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{})
		defer e.Close()
		for _, c := range []struct {
			change func(*engine.Request)
			want   string
		}{
			{func(r *engine.Request) { r.Prompt = nil }, "prompt is empty"},
			{func(r *engine.Request) { r.Prompt = []int32{1, 64} }, "prompt token 1 is 64, outside the vocabulary of 64"},
			{func(r *engine.Request) { r.MaxTokens = -1 }, "max_tokens must not be negative, got -1"},
			{func(r *engine.Request) { r.MinTokens = 11 }, "min_tokens must be at most max_tokens 10, got 11"},
			{
				func(r *engine.Request) { r.MaxTokens, r.MinTokens = 0, 1<<20 },
				"min_tokens must be at most what the prompt leaves: 1020, got 1048576",
			},
			{func(r *engine.Request) { r.Sampling.TopP = 2 }, "top_p must be in (0, 1], got 2"},
			{func(r *engine.Request) { r.StopTokenIDs = []int32{99} }, "stop_token_ids names token 99 outside the vocabulary of 64"},
		} {
			r := greedy(prompt(1, 5), 10)
			c.change(r)
			if _, err := e.Submit(t.Context(), r); err == nil || err.Error() != c.want {
				t.Errorf("error %v; want %s", err, c.want)
			}
		}
		params := sample.Default()
		if _, err := e.Submit(t.Context(), &engine.Request{Prompt: prompt(1, 5), Sampling: params}); err != nil {
			t.Error(err)
		}
	})
}
