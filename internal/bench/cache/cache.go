// Package cache measures what it is worth to know a prefix: the time to the first token of a prompt whose KV is computed,
// lies in the pool, or comes from each of the tiers behind it.
//
// Two prompts take turns on a KV cache that holds one of them, so each time the other has just pushed it out. Whatever the
// source, the token and its log probability must be those of the computed run.
package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/sample"
)

// Options say what to measure.
type Options struct {
	Model  llm.Options // Model, Catalog, CPU and Threads; the rest is set here
	Prefix int         // tokens that are known; rounded up to whole blocks
	Repeat int         // measurements of each source but the first
	Dir    string      // for the disk tier; empty is a temporary folder
	Valkey string      // URL; empty leaves that row out
	// Progress is told what begins.
	Progress func(string)
}

// Row is one source of a prefix.
type Row struct {
	Source  string  `json:"source"`
	Seconds float64 `json:"ttft_s"` // median time to the first token
	Fastest float64 `json:"fastest_s"`
	Factor  float64 `json:"times_faster"` // than computing it
	Loaded  int     `json:"loaded_tokens"`
}

// Report is what was measured.
type Report struct {
	Model  string `json:"model"`
	Prefix int    `json:"prefix_tokens"`
	Bytes  int64  `json:"prefix_bytes"` // of its KV
	Rows   []Row  `json:"rows"`
	Equal  bool   `json:"equal"` // every source gave the token and the log probability of the computed run
}

// bench is a run.
type bench struct {
	o       Options
	prompts [2][]int32
	want    [2]sample.Token
	report  Report
}

// Run measures.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "quire-bench-cache-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		o.Dir = dir
	}
	b := &bench{o: o, report: Report{Equal: true}}
	for _, part := range []func(context.Context) error{b.memory, b.fill, b.disk, b.shared} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return &b.report, nil
}

// load starts an engine whose pool holds one prompt, with the tiers behind it.
func (b *bench) load(ctx context.Context, tiers llm.Tiers) (*llm.Model, error) {
	o := b.o.Model
	o.Engine.Sched.BlockSize = llm.DefaultBlockSize
	blocks := (b.o.Prefix + llm.DefaultBlockSize - 1) / llm.DefaultBlockSize
	o.KVCacheTokens = (blocks + 1) * llm.DefaultBlockSize
	o.Tiers = tiers
	m, err := llm.Load(ctx, o)
	if err != nil {
		return nil, err
	}
	if b.prompts[0] == nil {
		n := blocks * llm.DefaultBlockSize
		b.report.Model, b.report.Prefix, b.report.Bytes = m.Name, n, int64(blocks)*m.Plan.BlockBytes
		for i := range b.prompts {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for range n + 1 { // the last token is computed in any case
				b.prompts[i] = append(b.prompts[i], random.Int32N(int32(m.Engine.Vocab())))
			}
		}
	}
	return m, nil
}

// first asks for one token of a prompt, and returns how long it took and how much was loaded and found.
func (b *bench) first(ctx context.Context, m *llm.Model, i int) (time.Duration, engine.Finish, error) {
	params := sample.Default()
	params.Temperature, params.Logprobs = 0, 0
	start := time.Now()
	h, err := m.Engine.Submit(ctx, &engine.Request{Prompt: b.prompts[i], MaxTokens: 1, IgnoreEOS: true, Sampling: params})
	if err != nil {
		return 0, engine.Finish{}, err
	}
	token, err := h.Next(ctx)
	took := time.Since(start)
	if err != nil {
		return 0, engine.Finish{}, err
	}
	if _, err := h.Next(ctx); !errors.Is(err, io.EOF) {
		return 0, engine.Finish{}, fmt.Errorf("a second token: %w", err)
	}
	if b.want[i].Rank == 0 {
		b.want[i] = token
	}
	if w := &b.want[i]; w.ID != token.ID || w.Logprob != token.Logprob {
		b.report.Equal = false
	}
	return took, h.Finish(), nil
}

// measure times a source repeat times and adds its row. turn says which prompt is asked.
func (b *bench) measure(ctx context.Context, m *llm.Model, source string, repeat int, turn func(k int) int) error {
	b.o.Progress(source)
	var times []float64
	row := Row{Source: source}
	for k := range repeat {
		took, f, err := b.first(ctx, m, turn(k))
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		if source != computed && b.report.Prefix-f.CachedTokens >= largestChunk {
			return fmt.Errorf("%s: %d of %d tokens were there: %+v", source, f.CachedTokens, b.report.Prefix, m.Tiers.Stats())
		}
		times = append(times, took.Seconds())
		row.Loaded = f.LoadedTokens
	}
	slices.Sort(times)
	row.Seconds, row.Fastest, row.Factor = times[len(times)/2], times[0], 1
	if len(b.report.Rows) > 0 {
		row.Factor = b.report.Rows[0].Seconds / row.Seconds
	}
	b.report.Rows = append(b.report.Rows, row)
	return nil
}

// largestChunk is the size of a store's chunk in tokens: the end of a prefix that fills none is computed.
const largestChunk = 64

// computed is the source that all are compared with.
const computed = "computed"

// alternate asks for the prompts in turn.
func alternate(k int) int { return k % 2 }

// memory measures what needs no disk: computing, the pool, the ram tier.
func (b *bench) memory(ctx context.Context) error {
	m, err := b.load(ctx, llm.Tiers{RAM: 4 << 30})
	if err != nil {
		return err
	}
	err = b.measure(ctx, m, computed, 2, alternate)
	if err == nil {
		err = b.measure(ctx, m, "pool", b.o.Repeat, func(int) int { return 1 })
	}
	if err == nil {
		err = b.measure(ctx, m, "ram", b.o.Repeat, alternate)
	}
	return errors.Join(err, m.Close())
}

// fill has both prompts stored.
func (b *bench) fill(ctx context.Context) error {
	b.o.Progress("storing")
	m, err := b.load(ctx, llm.Tiers{RAM: -1, Disk: b.o.Dir, DiskBytes: 4*b.report.Bytes + 64<<20, Valkey: b.o.Valkey})
	if err != nil {
		return err
	}
	for i := range b.prompts {
		if _, _, err := b.first(ctx, m, i); err != nil {
			return errors.Join(err, m.Close())
		}
	}
	return m.Close()
}

// disk measures the disk tier of a new process's engine.
func (b *bench) disk(ctx context.Context) error {
	m, err := b.load(ctx, llm.Tiers{RAM: -1, Disk: b.o.Dir, DiskBytes: 4*b.report.Bytes + 64<<20})
	if err != nil {
		return err
	}
	return errors.Join(b.measure(ctx, m, "disk, after a restart", b.o.Repeat, alternate), m.Close())
}

// shared measures the server that another engine filled.
func (b *bench) shared(ctx context.Context) error {
	if b.o.Valkey == "" {
		return nil
	}
	m, err := b.load(ctx, llm.Tiers{RAM: -1, Valkey: b.o.Valkey})
	if err != nil {
		return err
	}
	return errors.Join(b.measure(ctx, m, "valkey, of a replica", b.o.Repeat, alternate), m.Close())
}

// Print writes a table.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s, prefix of %d tokens, %.1f MB of KV\n\n", r.Model, r.Prefix, float64(r.Bytes)/1e6)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "prefix\tfirst token ms\tfastest\ttimes faster\tloaded")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%d\n", row.Source, 1e3*row.Seconds, 1e3*row.Fastest, row.Factor, row.Loaded)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	same := "Every source gave the same token with the same log probability, bit for bit."
	if !r.Equal {
		same = "FAULT: a source gave another token or log probability than computing."
	}
	_, err := fmt.Fprintf(w, "\n%s\n", same)
	return err
}
