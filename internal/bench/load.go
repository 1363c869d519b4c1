package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// Load is one run of a benchmark.
type Load struct {
	Target *Target
	Items  []Item

	Rate           float64 // arrivals a second; +Inf or 0 sends all at once
	Burstiness     float64 // shape of the gaps between arrivals; 1 is a Poisson process
	MaxConcurrency int     // most requests under way; 0 has no limit
	Warmups        int     // requests before the measurement
	IgnoreEOS      bool
	Seed           uint64 // of the arrivals

	// Finished, if not nil, is called after each request, from many goroutines.
	Finished func(*Record)
}

// Item is a prompt of a dataset and the length of the answer asked for.
type Item struct {
	Prompt       string
	OutputTokens int
}

// Results are the records of a run, in the order of the items. Requests that were never sent or did not finish because
// the run was interrupted have no record.
type Results struct {
	Records     []*Record
	Start       time.Time
	Duration    time.Duration
	Interrupted bool
}

// FirstError returns the error of the first request that failed, or nil.
func (r *Results) FirstError() error {
	for _, record := range r.Records {
		if record != nil && record.Err != nil {
			return record.Err
		}
	}
	return nil
}

// Run sends all requests and waits for the answers. When ctx ends first, Run returns what it has by then. The only error
// is a failing warm-up: the failures of requests are in their records.
func (l *Load) Run(ctx context.Context) (*Results, error) {
	if err := l.warmUp(ctx); err != nil {
		return nil, err
	}
	at := arrivals(rand.New(rand.NewPCG(l.Seed, 0)), len(l.Items), l.Rate, l.Burstiness)
	slots := make(chan struct{}, max(l.MaxConcurrency, 1))
	records := make([]*Record, len(l.Items))
	var clients sync.WaitGroup
	start := time.Now()
	for i := range l.Items {
		if !sleepUntil(ctx, start.Add(at[i])) {
			break
		}
		clients.Go(func() {
			if l.MaxConcurrency > 0 {
				select {
				case slots <- struct{}{}:
					defer func() { <-slots }()
				case <-ctx.Done():
					return
				}
			}
			records[i] = l.send(ctx, i)
		})
	}
	clients.Wait()
	return &Results{Records: records, Start: start, Duration: time.Since(start), Interrupted: ctx.Err() != nil}, nil
}

// send sends item i; it returns nil when the run was interrupted meanwhile.
func (l *Load) send(ctx context.Context, i int) *Record {
	r := l.Target.Send(ctx, l.request(i))
	if r.Err != nil && ctx.Err() != nil {
		return nil
	}
	if l.Finished != nil {
		l.Finished(r)
	}
	return r
}

func (l *Load) request(i int) *Request {
	item := l.Items[i]
	return &Request{
		ID: "bench-" + strconv.Itoa(i), Prompt: item.Prompt, OutputTokens: item.OutputTokens, IgnoreEOS: l.IgnoreEOS,
	}
}

// warmUp sends the first items, as many at a time as the measurement will.
func (l *Load) warmUp(ctx context.Context) error {
	n := min(l.Warmups, len(l.Items))
	slots := make(chan struct{}, max(1, min(n, max(l.MaxConcurrency, 1))))
	faults := make([]error, n)
	var clients sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		clients.Go(func() {
			defer func() { <-slots }()
			faults[i] = l.Target.Send(ctx, l.request(i)).Err
		})
	}
	clients.Wait()
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	return nil
}

// sleepUntil returns false if ctx ends first.
func sleepUntil(ctx context.Context, t time.Time) bool {
	wait := time.Until(t)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// WaitReady sends a first request until it is answered, for at most timeout, and returns the record of the answer.
func (l *Load) WaitReady(ctx context.Context, timeout time.Duration) (*Record, error) {
	if len(l.Items) == 0 {
		return nil, errors.New("no prompts to send")
	}
	whole := ctx
	ctx, cancel := context.WithTimeout(whole, timeout)
	defer cancel()
	for {
		r := l.Target.Send(ctx, l.request(0))
		if r.Err == nil {
			return r, nil
		}
		if 400 <= r.Status && r.Status < 500 { // waiting does not help
			return nil, fmt.Errorf("first request: %w", r.Err)
		}
		if !sleepUntil(ctx, time.Now().Add(time.Second)) {
			if whole.Err() != nil { // interrupted, not late
				return nil, context.Cause(whole)
			}
			return nil, fmt.Errorf("server not ready after %v: %w", timeout, r.Err)
		}
	}
}
