package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/sample"
)

// PairOptions say what two engines are compared on: rounds of requests with prompts that nobody has seen before. In each round
// both engines compute the same requests, one after the other, in turns first: what else the machine does meets both.
type PairOptions struct {
	Model    llm.Options // Model, Catalog, CPU and Threads; the rest is set here
	Rounds   int
	Requests int    // a round
	Clients  int    // that send them, one after the other
	Prompt   int    // tokens
	Output   int    // tokens
	Dir      string // for the disk tier; empty is a temporary folder
	Valkey   string // URL; empty leaves that tier out
	Progress func(string)
}

// PairReport compares two engines.
type PairReport struct {
	What   string      `json:"what"`
	Rounds []PairRound `json:"rounds"`
	Median float64     `json:"median_ratio"`
	Goal   float64     `json:"goal"` // what Median should be at least
	Failed int         `json:"failed_requests"`
	Loaded int         `json:"loaded_tokens"` // nothing was to be found

	// Of a store that hung:
	Paused    float64 `json:"paused_s,omitempty"`
	Recovered float64 `json:"recovered_s,omitempty"` // from when it went on to the first chunk stored in it
}

// PairRound is the throughput of both engines in one round.
type PairRound struct {
	Without float64 `json:"without_tokens_per_second"` // prompt and output
	With    float64 `json:"with_tokens_per_second"`
	Ratio   float64 `json:"ratio"`
}

// pair is two engines under the same load.
type pair struct {
	o             PairOptions
	without, with *llm.Model
	round         uint64
	report        PairReport
	failed        atomic.Int64
	loaded        atomic.Int64
}

// Overhead compares an engine whose tiers are all on, and bring nothing, with one without tiers.
func Overhead(ctx context.Context, o PairOptions) (report *PairReport, err error) {
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "quire-bench-cache-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(o.Dir)
	}
	tiers := llm.Tiers{RAM: 256 << 20, Disk: o.Dir, DiskBytes: 512 << 20, Valkey: o.Valkey}
	p, err := newPair(ctx, o, llm.Tiers{RAM: -1}, tiers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	p.report = PairReport{What: "all tiers on, nothing to hit, against none", Goal: 0.98}
	for i := range o.Rounds {
		o.Progress(fmt.Sprintf("round %d of %d", i+1, o.Rounds))
		if err := p.compare(ctx); err != nil {
			return nil, err
		}
	}
	return p.finish(), nil
}

// newPair loads both engines and warms them up. Their pools hold what the clients need at once, and as much again: most of
// what a round computes is evicted in the next.
func newPair(ctx context.Context, o PairOptions, without, with llm.Tiers) (*pair, error) {
	p := &pair{o: o}
	load := func(tiers llm.Tiers) (*llm.Model, error) {
		m := o.Model
		m.Engine.Sched.BlockSize = llm.DefaultBlockSize
		blocks := (o.Prompt + o.Output + llm.DefaultBlockSize) / llm.DefaultBlockSize
		m.KVCacheTokens = 2 * o.Clients * blocks * llm.DefaultBlockSize
		m.Tiers = tiers
		return llm.Load(ctx, m)
	}
	var err error
	if p.without, err = load(without); err != nil {
		return nil, err
	}
	if p.with, err = load(with); err != nil {
		return nil, errors.Join(err, p.without.Close())
	}
	o.Progress("warming up")
	for _, m := range []*llm.Model{p.without, p.with} {
		if _, err := p.serve(ctx, m); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	p.round++
	return p, nil
}

func (p *pair) close() error { return errors.Join(p.without.Close(), p.with.Close()) }

// compare runs a round on both.
func (p *pair) compare(ctx context.Context) error {
	speed := map[*llm.Model]float64{}
	order := []*llm.Model{p.without, p.with}
	if p.round%2 == 0 {
		slices.Reverse(order)
	}
	for _, m := range order {
		var err error
		if speed[m], err = p.serve(ctx, m); err != nil {
			return err
		}
	}
	p.round++
	p.report.Rounds = append(p.report.Rounds, PairRound{
		Without: speed[p.without], With: speed[p.with], Ratio: speed[p.with] / speed[p.without],
	})
	return nil
}

// serve computes the requests of the round and returns tokens a second. A request that fails is counted; only the end of ctx
// is an error.
func (p *pair) serve(ctx context.Context, m *llm.Model) (float64, error) {
	var clients errgroup.Group
	var next, tokens atomic.Int64
	start := time.Now()
	for range p.o.Clients {
		clients.Go(func() error {
			for {
				i := next.Add(1)
				if i > int64(p.o.Requests) {
					return nil
				}
				n, err := p.ask(ctx, m, i)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err != nil {
					p.failed.Add(1)
					p.o.Progress(fmt.Sprintf("a request failed: %v", err))
				}
				tokens.Add(int64(n))
			}
		})
	}
	err := clients.Wait()
	return float64(tokens.Load()) / time.Since(start).Seconds(), err
}

// ask sends the i-th request of the round and returns its tokens.
func (p *pair) ask(ctx context.Context, m *llm.Model, i int64) (int, error) {
	random := rand.New(rand.NewPCG(p.round, uint64(i)))
	prompt := make([]int32, p.o.Prompt)
	for k := range prompt {
		prompt[k] = random.Int32N(int32(m.Engine.Vocab()))
	}
	params := sample.Default()
	params.Temperature = 0
	h, err := m.Engine.Submit(ctx, &engine.Request{Prompt: prompt, MaxTokens: p.o.Output, IgnoreEOS: true, Sampling: params})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, err := range h.All(ctx) {
		if err != nil {
			return 0, err
		}
		n++
	}
	f := h.Finish()
	p.loaded.Add(int64(f.LoadedTokens))
	if n != p.o.Output {
		return 0, fmt.Errorf("%d of %d tokens: %v", n, p.o.Output, f.Reason)
	}
	return f.PromptTokens + f.OutputTokens, nil
}

// finish closes the report.
func (p *pair) finish() *PairReport {
	var ratios []float64
	for _, r := range p.report.Rounds {
		ratios = append(ratios, r.Ratio)
	}
	slices.Sort(ratios)
	p.report.Median = ratios[len(ratios)/2]
	p.report.Failed, p.report.Loaded = int(p.failed.Load()), int(p.loaded.Load())
	return &p.report
}

// Print writes a table.
func (r *PairReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n\n", r.What)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "round\twithout t/s\twith t/s\tratio\t")
	least, most := r.Rounds[0].Ratio, r.Rounds[0].Ratio
	for i, round := range r.Rounds {
		fmt.Fprintf(t, "%d\t%.0f\t%.0f\t%.3f\t\n", i+1, round.Without, round.With, round.Ratio)
		least, most = min(least, round.Ratio), max(most, round.Ratio)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nmedian ratio %.3f (%.3f … %.3f), goal %.2f; %d requests failed, %d tokens loaded\n",
		r.Median, least, most, r.Goal, r.Failed, r.Loaded)
	if r.Paused > 0 {
		fmt.Fprintf(w, "the store hung for %.0f s; %.1f s after it went on it was used again\n", r.Paused, r.Recovered)
	}
	return nil
}
