package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/quire-ai/quire/sched"
)

// benchSchedCmd times the scheduler alone, in steady decode.
type benchSchedCmd struct {
	Running []int `default:"16,64,256,1024,4096" placeholder:"N,…" help:"Requests that decode at once."`
	Waiting []int `default:"0,10000" placeholder:"N,…" help:"Requests that wait behind them."`
	Steps   int   `default:"2000" help:"Steps to time for each row."`
	JSON    bool  `name:"json" help:"Print a JSON array instead of a table."`
}

// Help says what is timed.
func (benchSchedCmd) Help() string {
	return `Times Schedule and Apply(StepDone) together, prefix caching on, one token a request and step, a new block for each request
every 16 steps. Microseconds of the thread's CPU time where the system tells it, else of the clock.`
}

// schedRow is what one configuration took.
type schedRow struct {
	Running int     `json:"running"`
	Waiting int     `json:"waiting"`
	P10     float64 `json:"us_p10"`
	P50     float64 `json:"us_p50"`
	P99     float64 `json:"us_p99"`
	Allocs  float64 `json:"allocs"` // a step
}

// Run times every row.
func (cmd *benchSchedCmd) Run(ctx context.Context, c *console) error {
	if cmd.Steps < 1 {
		return usageError{"bench sched: steps must be at least 1"}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	rows := []schedRow{}
	for _, running := range cmd.Running {
		for _, waiting := range cmd.Waiting {
			if err := ctx.Err(); err != nil {
				return err
			}
			rows = append(rows, timeSched(running, waiting, cmd.Steps))
		}
	}
	if cmd.JSON {
		e := json.NewEncoder(c.Out)
		e.SetIndent("", "  ")
		return e.Encode(rows)
	}
	w := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "running\twaiting\tus p10\tus p50\tus p99\tallocs a step\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%d\t%.1f\t%.1f\t%.1f\t%.2f\t\n", r.Running, r.Waiting, r.P10, r.P50, r.P99, r.Allocs)
	}
	return w.Flush()
}

// timeSched times steps of a scheduler with so many requests in decode and so many behind them.
func timeSched(running, waiting, steps int) schedRow {
	const prompt, blockSize, warm = 64, 16, 40
	output := steps + warm + 10
	s := sched.New(sched.Config{
		Blocks: running * ((prompt+output)/blockSize + 1), BlockSize: blockSize, MaxNumSeqs: running,
		MaxNumBatchedTokens: running * prompt, MaxModelLen: prompt + output + 1,
	})
	for i := range running + waiting {
		p := make([]int32, prompt)
		for j := range p {
			p[j] = int32(i*prompt + j)
		}
		r := &sched.Request{ID: sched.RequestID(fmt.Sprintf("r%06d", i)), Prompt: p, MaxTokens: output, IgnoreEOS: true}
		s.Apply(sched.AddRequest{Request: r})
	}
	d := schedDriver{s: s, token: []int32{7}}
	for range warm {
		d.step()
	}
	took := make([]float64, steps)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range took {
		d.collect()
		start := threadTime()
		d.plan()
		d.apply()
		took[i] = float64(threadTime()-start) / float64(time.Microsecond)
	}
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	at := func(q float64) float64 { return took[int(q*float64(len(took)-1))] }
	return schedRow{
		Running: running, Waiting: waiting, P10: at(0.1), P50: at(0.5), P99: at(0.99),
		Allocs: float64(after.Mallocs-before.Mallocs) / float64(steps),
	}
}

// schedDriver stands in for a model: every request samples the same token. In steady decode a step's outputs are those of
// the step before, so that only the scheduler is timed.
type schedDriver struct {
	s     *sched.Scheduler
	p     *sched.Plan
	done  sched.StepDone
	token []int32
}

func (d *schedDriver) plan() { d.p = d.s.Schedule(0) }

func (d *schedDriver) apply() {
	d.done.Step = d.p.Step
	d.s.Apply(&d.done)
}

// collect makes the outputs from the last plan, which the next one repeats.
func (d *schedDriver) collect() {
	d.done.Outputs = d.done.Outputs[:0]
	for i := range d.p.Requests {
		d.done.Outputs = append(d.done.Outputs, sched.StepOutput{ID: d.p.Requests[i].ID, Tokens: d.token})
	}
}

func (d *schedDriver) step() {
	d.plan()
	d.collect()
	d.apply()
}
