package pressure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/quire-ai/quire/internal/bench"
	"github.com/quire-ai/quire/internal/llm"
)

const (
	maxSeqs        = 32                // requests that may run at once
	requestTimeout = 600 * time.Second // of a client
)

// Options say what to test. BlockSizes, Budgets and PrefixCaching are tried in all combinations.
type Options struct {
	Model llm.Options // model, CPU and threads; the test sets up cache and scheduler

	BlockSizes    []int
	Budgets       []int // tokens of a step
	PrefixCaching []bool
	Waves         int      // times that each workload is run
	Cases         []string // names of workloads, none for all
	Scale         int      // divides the cache and all lengths, for a quick test; 1 is the real one

	Progress func(line string) // may be nil
}

func (o *Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// Run tests all combinations. Its error says that the test could not be made; what the test found is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	workloads, err := selectCases(o.Cases, o.Scale)
	if err != nil {
		return nil, err
	}
	kvTokens := cacheTokens / o.Scale
	alone, err := solo(ctx, o, workloads, kvTokens)
	if err != nil {
		return nil, err
	}
	report := &Report{Model: o.Model.Model, CacheTokens: kvTokens, Scale: o.Scale, SoloRuns: len(alone)}
	for _, prefix := range o.PrefixCaching {
		for _, budget := range o.Budgets {
			for _, blockSize := range o.BlockSizes {
				t := &trial{o: o, kvTokens: kvTokens, config: config{blockSize, budget, prefix}, alone: alone}
				if err := t.run(ctx, workloads, report); err != nil {
					return report, fmt.Errorf("%s: %w", t.config, err)
				}
			}
		}
	}
	return report, nil
}

// trial is the test of one setting.
type trial struct {
	o        Options
	kvTokens int
	config   config
	alone    answers
	host     *host
	sent     map[string]request // by X-Request-Id
}

// run serves the workloads one after the other from one server, as a server lives for long.
func (t *trial) run(ctx context.Context, workloads []workload, report *Report) (err error) {
	decisions, err := os.CreateTemp("", "quire-pressure-*.jsonl")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, decisions.Close(), os.Remove(decisions.Name())) }()
	if t.host, err = start(ctx, t.o.Model, t.kvTokens, t.config, decisions); err != nil {
		return err
	}
	t.sent = map[string]request{}
	rows, err := t.waves(ctx, workloads)
	report.Rows = append(report.Rows, rows...)
	setting := t.idle()
	if err := errors.Join(err, t.host.close()); err != nil {
		return err
	}
	if _, err := decisions.Seek(0, io.SeekStart); err != nil {
		return err
	}
	setting.replay(decisions)
	report.Settings = append(report.Settings, setting)
	return nil
}

// waves runs each workload as often as asked for.
func (t *trial) waves(ctx context.Context, workloads []workload) ([]*Row, error) {
	var rows []*Row
	for _, w := range workloads {
		requests, err := prompts(w, t.host.model.Tokenizer)
		if err != nil {
			return rows, err
		}
		for number := range t.o.Waves {
			t.o.progress("%s: %s (%s), wave %d of %d", t.config, w.name, w.what, number+1, t.o.Waves)
			row := t.wave(ctx, w, requests, number+1)
			if ctx.Err() != nil {
				return rows, ctx.Err()
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// wave sends all requests of a workload at once and checks what comes of it.
func (t *trial) wave(ctx context.Context, w workload, requests []request, number int) *Row {
	before := t.observe()
	health := t.watchHealth(ctx)
	start := time.Now()
	records := t.send(ctx, w, requests, number)
	took := time.Since(start)
	stalls := health()
	row := &Row{
		config: t.config, Case: w.name, What: w.what, Wave: number, Requests: len(requests), Seconds: took.Seconds(),
	}
	c := &checker{trial: t, row: row, workload: w, requests: requests, records: records}
	c.answers()
	c.schedule(before)
	c.progress(before, took, stalls)
	c.leftovers(before)
	return row
}

// send lets one client each send its request, all at the same moment but the late ones.
func (t *trial) send(ctx context.Context, w workload, requests []request, number int) []*bench.Record {
	records := make([]*bench.Record, len(requests))
	together, begun := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	var clients sync.WaitGroup
	for i, r := range requests {
		id := fmt.Sprintf("%s-%d-%d", w.name, number, i)
		t.sent[id] = r
		ask := &bench.Request{
			ID: id, PromptIDs: r.ids, OutputTokens: r.output, IgnoreEOS: true, NoStream: i%2 == 1, Started: begin,
		}
		clients.Go(func() {
			<-together
			ctx, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			if r.late {
				wait(ctx, begun)
			}
			if r.leaves {
				go func() {
					wait(ctx, begun)
					cancel()
				}()
			}
			records[i] = t.host.target.Send(ctx, ask)
		})
	}
	close(together)
	clients.Wait()
	return records
}

// wait waits for the event or the end of ctx.
func wait(ctx context.Context, event <-chan struct{}) {
	select {
	case <-event:
	case <-ctx.Done():
	}
}

// watchHealth asks /health ten times a second until the function it returns is called, which gives the answers that
// were not 200.
func (t *trial) watchHealth(ctx context.Context) func() []string {
	ctx, cancel := context.WithCancel(ctx)
	faults := make(chan []string, 1)
	go func() {
		var found []string
		defer func() { faults <- found }()
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			resp, err := t.host.target.Client.Get(t.host.target.BaseURL + "/health")
			if err != nil {
				found = append(found, err.Error())
				continue
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				found = append(found, resp.Status)
			}
		}
	}()
	return func() []string {
		cancel()
		return <-faults
	}
}

// observation is the state before a wave.
type observation struct {
	tally
	counters   counters
	logLines   int
	goroutines int
}

func (t *trial) observe() observation {
	t.host.target.Client.CloseIdleConnections()
	return observation{t.host.recorder.tally(), t.counters(), t.host.log.length(), runtime.NumGoroutine()}
}
