package engine_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/sched"
)

// Health says when work waits and no token moves, and why; and the interval line is printed then too.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		log := &recorder{}
		e, _ := newEngine(shape{
			toy: executortest.Options{Step: func(p *sched.Plan) error {
				if p.Requests[0].Outputs == 2 {
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
		h := e.Health()
		if h.Status != engine.Stalled || !strings.HasSuffix(h.Why, " has been running for 1m5s") || time.Since(h.Since) != 65*time.Second {
			t.Errorf("health after 65 s: %+v; want stalled since then, in a step", h)
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
		if got := log.all(); !slices.Equal(got, want) {
			t.Errorf("log:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// recorder is a log that keeps the messages.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

func (r *recorder) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler           { return r }
func (r *recorder) WithGroup(string) slog.Handler                { return r }
func (r *recorder) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
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
			synctest.Wait() // the loop has parked
			before := e.Snapshot()
			time.Sleep(365 * 24 * time.Hour)
			if after := e.Snapshot(); after.Steps != before.Steps {
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
					FirstToken: func(f engine.FirstTokenInfo) {
						if f.Wait <= 0 || f.PromptTokens == 0 {
							t.Errorf("first token %+v", f)
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
	if invariant.Enabled {
		t.Skip("audits allocate")
	}
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
