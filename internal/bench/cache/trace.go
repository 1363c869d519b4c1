package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quire-ai/quire/internal/bench"
	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/server"
	"github.com/quire-ai/quire/internal/workload"
)

// TraceOptions say which traffic a server gets, and what its cache holds.
type TraceOptions struct {
	Model    llm.Options // Model, Catalog, CPU and Threads; the rest is set here
	Requests []workload.Request
	Pool     int    // blocks of the KV cache
	RAM      int    // blocks in host memory, 0 for none
	Disk     int    // blocks on disk, 0 for none
	Dir      string // of the disk tier; empty is a temporary folder
	Valkey   string // URL; empty leaves that tier out
	Clients  int    // requests at once: the next comes when one has ended
	Progress func(string)
}

// TraceReport says how much of the prompts a server found in its cache, by the usage in its answers.
type TraceReport struct {
	Requests int     `json:"requests"`
	Failed   int     `json:"failed_requests"`
	Tokens   int     `json:"prompt_tokens"`
	Blocks   int     `json:"prompt_blocks"` // the last of a prompt may be partial
	Cached   int     `json:"cached_tokens"` // in all tiers, as usage counts them
	Seconds  float64 `json:"seconds"`

	Tiers []connector.TierStats `json:"tiers"`
}

// traceBlock is the block size: that of the traces at 1:32.
const traceBlock = 16

// Trace sends recorded traffic over HTTP to a server of this process.
func Trace(ctx context.Context, o TraceOptions) (report *TraceReport, err error) {
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "quire-bench-cache-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(o.Dir)
	}
	target, m, end, err := serveTrace(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	report = &TraceReport{Requests: len(o.Requests)}
	var clients errgroup.Group
	var next, failed, tokens, cached atomic.Int64
	start := time.Now()
	for range o.Clients {
		clients.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(o.Requests) || ctx.Err() != nil {
					return ctx.Err()
				}
				r := &o.Requests[i]
				got := target.Send(ctx, &bench.Request{
					PromptIDs: r.Prompt(traceBlock, m.Engine.Vocab()), OutputTokens: r.Output, IgnoreEOS: true, NoStream: true,
				})
				if got.Err != nil || got.OutputTokens != r.Output {
					failed.Add(1)
					o.Progress(fmt.Sprintf("request %d failed after %d of %d tokens: %v", i, got.OutputTokens, r.Output, got.Err))
				}
				tokens.Add(int64(got.PromptTokens))
				cached.Add(int64(got.CachedTokens))
				if (i+1)%1000 == 0 {
					o.Progress(fmt.Sprintf("%d of %d requests, %.1f %% found", i+1, len(o.Requests), 100*float64(cached.Load())/float64(tokens.Load())))
				}
			}
		})
	}
	if err := clients.Wait(); err != nil {
		return nil, err
	}
	report.Seconds = time.Since(start).Seconds()
	report.Failed, report.Tokens, report.Cached = int(failed.Load()), int(tokens.Load()), int(cached.Load())
	for i := range o.Requests {
		report.Blocks += len(o.Requests[i].Blocks)
	}
	if m.Tiers != nil {
		report.Tiers = m.Tiers.Stats()
	}
	return report, nil
}

// serveTrace serves the model on the loopback. end ends the server and then the model.
func serveTrace(ctx context.Context, o TraceOptions) (target *bench.Target, m *llm.Model, end func() error, err error) {
	mo := o.Model
	mo.Engine.Sched.BlockSize = traceBlock
	mo.Engine.Sched.MaxNumSeqs = o.Clients
	mo.KVCacheTokens = o.Pool * traceBlock
	plain := mo
	plain.Tiers = llm.Tiers{RAM: -1}
	if m, err = llm.Load(ctx, plain); err != nil { // to know how large a block is
		return nil, nil, nil, err
	}
	block := m.Plan.BlockBytes
	if err := m.Close(); err != nil {
		return nil, nil, nil, err
	}
	mo.Tiers = llm.Tiers{RAM: int64(o.RAM) * block, Valkey: o.Valkey}
	if o.RAM == 0 {
		mo.Tiers.RAM = -1
	}
	if o.Disk > 0 {
		mo.Tiers.Disk, mo.Tiers.DiskBytes = o.Dir, int64(o.Disk)*diskBytes(block)
	}
	if m, err = llm.Load(ctx, mo); err != nil {
		return nil, nil, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, nil, errors.Join(err, m.Close())
	}
	s := server.New(server.Options{Model: m, MaxRequestBytes: 16 << 20, StreamInterval: 1, Log: slog.New(slog.DiscardHandler)})
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(serving, l, 10*time.Second) }()
	target = &bench.Target{Client: bench.NewClient(), BaseURL: "http://" + l.Addr().String(), Backend: bench.Completions}
	return target, m, func() error {
		stop()
		err := <-stopped
		target.Client.CloseIdleConnections()
		return errors.Join(err, m.Close())
	}, nil
}

// diskBytes is the space that a block takes on disk: it stands in pages, with a header.
func diskBytes(block int64) int64 {
	const page = 4096
	return (block+page-1)/page*page + page
}

// Share is the part of the prompts' tokens that was found.
func (r *TraceReport) Share() float64 { return float64(r.Cached) / float64(r.Tokens) }

// Print writes a table.
func (r *TraceReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%d requests in %.0f s, %d failed; %d prompt tokens in %d blocks\n", r.Requests, r.Seconds, r.Failed, r.Tokens, r.Blocks)
	fmt.Fprintf(w, "found in the cache: %.1f %% of tokens, %.1f %% of blocks\n\n",
		100*r.Share(), 100*float64(r.Cached/traceBlock)/float64(r.Blocks))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "tier\tblocks\tloaded\tmissed\tstored\tnot stored\tevicted\t")
	for i := range r.Tiers {
		s := &r.Tiers[i]
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
			s.Name, s.Usage.Blocks, s.Loaded.Blocks, s.Missed, s.Stored.Blocks, s.Dropped+s.Refused, s.Evicted)
	}
	return t.Flush()
}
