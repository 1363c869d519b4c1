package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/bench"
	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/model"
)

// benchEngineCmd times a model's forward pass.
type benchEngineCmd struct {
	Model string `arg:"" help:"Name from quire list, hf:owner/repo/file, or path of a GGUF file."`

	Prompt  []int  `name:"n-prompt" short:"p" default:"512" placeholder:"N,…" help:"Prompt lengths to time."`
	Gen     []int  `name:"n-gen" short:"n" default:"128" placeholder:"N,…" help:"Numbers of tokens to generate."`
	Batch   []int  `name:"batch" short:"b" default:"1" placeholder:"N,…" help:"Sequences that generate at once."`
	Depth   []int  `name:"depth" short:"d" default:"0" placeholder:"N,…" help:"Tokens in the cache before the test."`
	Threads int    `name:"threads" short:"t" placeholder:"N" help:"Threads that compute; all the process may use by default."`
	Repeat  int    `name:"repetitions" short:"r" default:"5" help:"Times each test is run, after one to warm up."`
	Chunk   int    `name:"ubatch" default:"512" help:"Rows of a prefill step."`
	CPU     string `name:"cpu" default:"auto" enum:"auto,generic,avx2,avx512vnni,amx" help:"Kernels to use; auto takes the fastest."`
	Measure bool   `name:"measure" help:"Measure what the machine can do at best first, and print the shares of it."`
	JSON    bool   `name:"json" help:"Print a JSON array instead of a table."`
}

// Help says what the columns mean.
func (benchEngineCmd) Help() string {
	return `Times prompts (pp) and generation (tg) in the manner of llama-bench and llama-batched-bench, without server, scheduler
and sampling. t/s is the fastest repeat, then mean and standard deviation; GB/s is packed weights read, Gop/s
multiplications and additions with weights.`
}

// Run times every test.
func (c *benchEngineCmd) Run(ctx context.Context, con *console) (err error) {
	if c.Repeat < 1 || c.Chunk < 1 {
		return usageError{"bench engine: repetitions and ubatch must be at least 1"}
	}
	cfg, err := catalog.ConfigFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	path, err := catalog.New(cfg).Resolve(ctx, c.Model)
	if err != nil {
		return err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	level, err := cpu.Detect(c.CPU)
	if err != nil {
		return err
	}
	d, err := cpu.NewDevice(cpu.Options{Level: level, Threads: c.Threads})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	m, err := model.Load(f, model.Options{Device: d})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return c.time(ctx, con, m, d)
}

// time runs the tests and prints what they found.
func (c *benchEngineCmd) time(ctx context.Context, con *console, m *model.Model, d *cpu.Device) error {
	o := bench.EngineOptions{Prompts: c.Prompt, Gens: c.Gen, Batches: c.Batch, Depths: c.Depth, Chunk: c.Chunk, Repeats: c.Repeat}
	if c.Measure {
		p, err := d.MeasurePeak()
		if err != nil {
			return err
		}
		o.Peak = &p
	}
	if c.JSON {
		rows := []bench.EngineRow{}
		if err := bench.Engine(ctx, m, d, o, func(r bench.EngineRow) { rows = append(rows, r) }); err != nil {
			return err
		}
		e := json.NewEncoder(con.Out)
		e.SetIndent("", "  ")
		return e.Encode(rows)
	}
	fmt.Fprintf(con.Out, "%s: %d threads, %v\n", m.Arch, d.Threads(), d.Level())
	if p := o.Peak; p != nil {
		fmt.Fprintf(con.Out, "at best %.1f GB/s from memory, %.0f Gop/s of bytes, %.0f of floats\n", p.GBps, p.GopsInt, p.GopsReal)
	}
	t := tabwriter.NewWriter(con.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "test\tt/s\tmean\t±\tGB/s\tGop/s\t")
	share := func(s float64) string {
		if o.Peak == nil {
			return ""
		}
		return fmt.Sprintf(" (%.0f %%)", 100*s)
	}
	err := bench.Engine(ctx, m, d, o, func(r bench.EngineRow) {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%.1f%s\t%.0f%s\t\n", r.Name(), r.Speed, r.Mean, r.Spread,
			r.GBps, share(r.GBpsShare), r.Gops, share(r.GopsShare))
	})
	return errors.Join(err, t.Flush())
}
