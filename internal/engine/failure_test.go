package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/internal/sample"
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

// Health says when work waits and no token moves, and why; and the interval line is printed then too.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		log := &recorder{}
		e, _ := newEngine(shape{
			toy: executortest.Options{Step: func(p *sched.Plan) error {
				if p.Step == 3 {
					<-gate
				}
				return nil
			}},
			config: func(c *engine.Config) { c.LogInterval, c.Log = 10*time.Second, slog.New(log) },
		})
		defer e.Close()
		done := make(chan result)
		go func() { done <- serve(t.Context(), e, greedy(prompt(1, 10), 5)) }()
		time.Sleep(55 * time.Second)
		if h := e.Health(); h.Status != engine.OK {
			t.Errorf("health after 55 s: %+v; want ok", h)
		}
		time.Sleep(10 * time.Second)
		if h := e.Health(); h.Status != engine.Stalled || h.Why != "step 3 has been running for 1m5s" || time.Since(h.Since) != 65*time.Second {
			t.Errorf("health after 65 s: %+v; want stalled since then, in step 3", h)
		}
		close(gate)
		if got := <-done; len(got.tokens) != 5 {
			t.Errorf("%d tokens, %v; want 5", len(got.tokens), got.err)
		}
		drained(t, e)
		time.Sleep(time.Hour) // idle: no line
		want := []string{"Throughput (T/s) 1.10, Prefix cache hitrate 0.00%, 1 running, 0 waiting"}
		for range 5 {
			want = append(want, "Throughput (T/s) 0.00, Prefix cache hitrate 0.00%, 1 running, 0 waiting")
		}
		want = append(want, "Throughput (T/s) 0.30, Prefix cache hitrate 0.00%, 0 running, 0 waiting")
		if !slices.Equal(log.lines, want) {
			t.Errorf("log:\n%s\nwant:\n%s", strings.Join(log.lines, "\n"), strings.Join(want, "\n"))
		}
	})
}

// recorder is a log that keeps the messages.
type recorder struct{ lines []string }

func (r *recorder) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler           { return r }
func (r *recorder) WithGroup(string) slog.Handler                { return r }
func (r *recorder) Handle(_ context.Context, rec slog.Record) error {
	r.lines = append(r.lines, rec.Message)
	return nil
}

// mistral.rs #1652: a core at 100 % while idle. Parked, the engine's goroutines wait for a channel and nothing else: the
// bubble's clock, which stands while anything can run, leaps over a year.
func TestIdleParks1652(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{config: func(c *engine.Config) { c.LogInterval = time.Second }})
		defer e.Close()
		for range 3 {
			serve(t.Context(), e, greedy(prompt(1, 10), 5))
			before := e.Snapshot()
			time.Sleep(365 * 24 * time.Hour)
			if after := e.Snapshot(); after.Steps > before.Steps+1 {
				t.Errorf("%d plans were made in an idle year", after.Steps-before.Steps)
			}
		}
	})
}

func TestNoGoroutineLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	e, _ := newEngine(shape{config: func(c *engine.Config) { c.LogInterval = time.Second }})
	serveAll(t.Context(), e, each(10, func(i int) *engine.Request { return greedy(prompt(i, 10), 5) }))
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for range 1000 { // goroutines that have ended are counted until they are reaped
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, before %d", runtime.NumGoroutine(), before)
}

func TestResetPrefixCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{toy: executortest.Options{Step: stepTime(time.Millisecond)}})
		defer e.Close()
		cached := func() int { return serve(t.Context(), e, greedy(prompt(1, 100), 5)).finish.CachedTokens }
		if a, b := cached(), cached(); a != 0 || b != 96 {
			t.Errorf("cached tokens cold %d, warm %d; want 0, 96", a, b)
		}
		if err := e.ResetPrefixCache(t.Context(), false); err != nil {
			t.Error(err)
		}
		if n := cached(); n != 0 {
			t.Errorf("cached tokens after reset %d; want 0", n)
		}
		want := alone(greedy(prompt(2, 50), 30), executortest.Options{})
		done := make(chan result)
		go func() { done <- serve(t.Context(), e, greedy(prompt(2, 50), 30)) }()
		time.Sleep(5500 * time.Microsecond)
		if err := e.ResetPrefixCache(t.Context(), false); err == nil {
			t.Error("reset while blocks are in use: no error")
		}
		if err := e.ResetPrefixCache(t.Context(), true); err != nil {
			t.Error(err)
		}
		if got := <-done; !slices.Equal(got.tokens, want.tokens) || got.finish.Preemptions != 1 {
			t.Errorf("request over a reset: %d tokens, %d preemptions, %v; want its own text, 1", len(got.tokens), got.finish.Preemptions, got.err)
		}
		drained(t, e)
	})
}

// Prompt log probabilities need every token computed once, cache or not, preempted or not.
func TestPromptLogprobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(shape{budget: 16})
		defer e.Close()
		r := greedy(prompt(1, 50), 3)
		r.Sampling.PromptLogprobs, r.Sampling.Logprobs = 2, 1
		var first []sample.Token
		for range 2 {
			h, err := e.Submit(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			tok, err := h.Next(t.Context())
			if err != nil || tok.Rank != 1 || len(tok.Top) != 1 || tok.Top[0].ID != tok.ID {
				t.Errorf("token %+v, %v; want rank 1 with itself on top", tok, err)
			}
			got := h.PromptLogprobs()
			if len(got) != 49 || got[0].ID != r.Prompt[1] || len(got[0].Top) != 2 {
				t.Errorf("%d prompt logprobs, the first %+v", len(got), got[0])
			}
			if first == nil {
				first = got
			} else if got[48].Logprob != first[48].Logprob {
				t.Errorf("last logprob %v with a warm cache, %v with a cold one", got[48].Logprob, first[48].Logprob)
			}
			read(t.Context(), h)
		}
		drained(t, e)
	})
}

// Every accepted request is observed to end, exactly once, with times in order.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends []engine.FinishInfo
		tokens, sampled, computed, gaps := 0, 0, 0, 0
		e, _ := newEngine(shape{
			blocks: 16, toy: executortest.Options{Step: stepTime(time.Millisecond)},
			config: func(c *engine.Config) {
				c.Observer = engine.Observer{
					Finished: func(f engine.FinishInfo) { ends = append(ends, f); tokens += f.OutputTokens },
					Step:     func(s engine.StepInfo) { sampled += s.Sampled; computed += s.Tokens },
					FirstToken: func(d time.Duration) {
						if d <= 0 {
							t.Errorf("time to first token %v", d)
						}
						gaps++
					},
					NextToken: func(d time.Duration) {
						if d < time.Millisecond {
							t.Errorf("time between tokens %v; want at least a step", d)
						}
						gaps++
					},
				}
			},
		})
		defer e.Close()
		serveAll(t.Context(), e, each(8, func(i int) *engine.Request { return greedy(prompt(i, 30), 60) }))
		drained(t, e)
		if len(ends) != 8 || tokens != 480 || sampled != 480 || gaps != 480 || uint64(computed) != e.Snapshot().ComputedTokens {
			t.Errorf("%d ends, %d output tokens, %d sampled, %d timed; want 8, 480, 480, 480", len(ends), tokens, sampled, gaps)
		}
		preempted := 0
		for _, f := range ends {
			preempted += f.Preemptions
			if f.Scheduled.Before(f.Arrival) || !f.FirstToken.After(f.Scheduled) || !f.LastToken.After(f.FirstToken) || f.End.Before(f.LastToken) {
				t.Errorf("times out of order: %+v", f)
			}
		}
		if n := e.Snapshot().Preemptions; preempted == 0 || uint64(preempted) != n {
			t.Errorf("%d preemptions observed, %d counted; want the same, not 0", preempted, n)
		}
	})
}

// The loop allocates for what it hands out and nothing else; what a step costs does not grow with the steps before.
func TestStepAllocations(t *testing.T) {
	steps := make(chan struct{})
	e, _ := newEngine(shape{blocks: 256, modelLen: 4096, toy: executortest.Options{Step: func(*sched.Plan) error {
		<-steps
		return nil
	}}})
	h, err := e.Submit(t.Context(), greedy(prompt(1, 10), 3000))
	if err != nil {
		t.Fatal(err)
	}
	next := func() {
		steps <- struct{}{}
		if _, err := h.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		next()
	}
	// One token for the reader, one slice of tokens by the toy; hashing a full block every 16 steps.
	if n := testing.AllocsPerRun(1000, next); n > 3 {
		t.Errorf("%v allocations a step; want at most 3", n)
	}
	h.Abort()
	close(steps)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
