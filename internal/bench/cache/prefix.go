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

// Options say what Run measures. Two prompts take turns on a KV cache that holds one of them, so each time the other has just
// pushed it out. Whatever the source, the token and its log probability must be those of the computed run.
type Options struct {
	Model  llm.Options // Model, Catalog, CPU and Threads; the rest is set here
	Prefix int         // tokens that are known; rounded up to whole blocks
	Repeat int         // measurements of each source, after one of each prompt that is not counted
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
	Slowest float64 `json:"slowest_s"`
	Factor  float64 `json:"times_faster"` // than computing it
	Goal    float64 `json:"goal"`         // what Factor should be at least, for a prefix of 2,000 tokens
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

// prefixes is a run of Run.
type prefixes struct {
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
	b := &prefixes{o: o, report: Report{Equal: true}}
	for _, part := range []func(context.Context) error{b.compute, b.memory, b.fill, b.disk, b.shared} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return &b.report, nil
}

// load starts an engine whose pool holds one prompt, with the tiers behind it.
func (b *prefixes) load(ctx context.Context, tiers llm.Tiers) (*llm.Model, error) {
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
func (b *prefixes) first(ctx context.Context, m *llm.Model, i int) (time.Duration, engine.Finish, error) {
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

// measure times a source and adds its row. turn says which prompt is asked, of the two.
func (b *prefixes) measure(ctx context.Context, m *llm.Model, row Row, turn func(k int) int) error {
	b.o.Progress(row.Source)
	var times []float64
	for k := range b.o.Repeat + len(b.prompts) {
		took, f, err := b.first(ctx, m, turn(k))
		if err != nil {
			return fmt.Errorf("%s: %w", row.Source, err)
		}
		if k < len(b.prompts) {
			continue
		}
		switch known := f.CachedTokens; {
		case row.Source == computed && known > 0:
			return fmt.Errorf("%d of %d tokens were there that were to be computed", known, b.report.Prefix)
		case row.Source != computed && b.report.Prefix-known >= largestChunk:
			return fmt.Errorf("%s: %d of %d tokens were there", row.Source, known, b.report.Prefix)
		}
		times = append(times, took.Seconds())
		row.Loaded = f.LoadedTokens
	}
	slices.Sort(times)
	row.Seconds, row.Fastest, row.Slowest, row.Factor = times[len(times)/2], times[0], times[len(times)-1], 1
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

// alternate asks for the prompts in turn; again always for one.
func alternate(k int) int { return k % 2 }
func again(int) int       { return 1 }

// on loads an engine, measures a source on it and closes it.
func (b *prefixes) on(ctx context.Context, tiers llm.Tiers, row Row, turn func(int) int) error {
	m, err := b.load(ctx, tiers)
	if err != nil {
		return err
	}
	return errors.Join(b.measure(ctx, m, row, turn), m.Close())
}

// compute measures computing the prefix, without any tier, and finding it in the pool.
func (b *prefixes) compute(ctx context.Context) error {
	if err := b.on(ctx, llm.Tiers{RAM: -1}, Row{Source: computed, Goal: 1}, alternate); err != nil {
		return err
	}
	return b.on(ctx, llm.Tiers{RAM: -1}, Row{Source: "pool", Goal: 50}, again)
}

// memory measures the ram tier.
func (b *prefixes) memory(ctx context.Context) error {
	return b.on(ctx, llm.Tiers{RAM: 4*b.report.Bytes + 64<<20}, Row{Source: "ram", Goal: 30}, alternate)
}

// onDisk is the disk tier alone.
func (b *prefixes) onDisk() llm.Tiers {
	return llm.Tiers{RAM: -1, Disk: b.o.Dir, DiskBytes: 4*b.report.Bytes + 64<<20}
}

// fill has both prompts stored.
func (b *prefixes) fill(ctx context.Context) error {
	b.o.Progress("storing")
	tiers := b.onDisk()
	tiers.Valkey = b.o.Valkey
	m, err := b.load(ctx, tiers)
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
func (b *prefixes) disk(ctx context.Context) error {
	return b.on(ctx, b.onDisk(), Row{Source: "disk, after a restart", Goal: 20}, alternate)
}

// shared measures the server that another engine filled.
func (b *prefixes) shared(ctx context.Context) error {
	if b.o.Valkey == "" {
		return nil
	}
	return b.on(ctx, llm.Tiers{RAM: -1, Valkey: b.o.Valkey}, Row{Source: "valkey, of a replica", Goal: 15}, alternate)
}

// Print writes a table.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s, prefix of %d tokens, %.1f MB of KV\n\n", r.Model, r.Prefix, float64(r.Bytes)/1e6)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "prefix\tfirst token ms\tfastest … slowest\ttimes faster\tgoal\tloaded")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f … %.1f\t%.1f\t%.0f\t%d\n",
			row.Source, 1e3*row.Seconds, 1e3*row.Fastest, 1e3*row.Slowest, row.Factor, row.Goal, row.Loaded)
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
