package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quire-ai/quire/internal/bench/cache"
	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/llm"
)

// benchCacheCmd measures the KV cache and its tiers.
type benchCacheCmd struct {
	Model string `arg:"" default:"smollm2:135m" help:"Name from quire list, hf:owner/repo/file, or path of a GGUF file."`

	Prefix int    `default:"2000" env:"-" help:"Tokens that are known."`
	Repeat int    `short:"r" default:"5" env:"-" help:"Times each source is measured."`
	Dir    string `env:"-" placeholder:"DIR" help:"Folder for the disk tier; a temporary one by default."`
	Valkey string `env:"-" placeholder:"URL" help:"Server for the shared tier, or local: starts one. None by default."`

	Overhead bool          `env:"-" xor:"what" help:"Compare the throughput with all tiers, bringing nothing, to none."`
	Pause    time.Duration `env:"-" xor:"what" placeholder:"TIME" help:"Stop a local server for so long under load, and compare."`
	Trace    string        `env:"-" xor:"what" placeholder:"FILE" help:"Serve recorded traffic over HTTP, and show how much of it is found."`
	Rounds   int           `default:"10" env:"-" help:"Pairs of --overhead."`
	Requests int           `default:"32" env:"-" help:"Requests a round of --overhead and --pause."`
	Clients  int           `default:"8" env:"-" help:"That send them."`
	Prompt   int           `default:"256" env:"-" help:"Tokens of their prompts."`
	Output   int           `default:"32" env:"-" help:"Tokens of their answers."`

	Scale int `default:"32" env:"-" help:"Divides the lengths of --trace; a block of the trace becomes one of 512/scale tokens."`
	First int `env:"-" placeholder:"N" help:"Serve the first N requests of --trace only."`
	Pool  int `default:"1000" env:"-" help:"Blocks of the KV cache, with --trace."`
	RAM   int `name:"ram" env:"-" help:"Blocks in host memory, with --trace."`
	Disk  int `env:"-" help:"Blocks on disk, with --trace."`

	CPU     string `name:"cpu" default:"auto" enum:"auto,generic,avx2,avx512vnni,amx" help:"Kernels to use."`
	Threads int    `short:"t" placeholder:"N" help:"Threads that compute; all the process may use by default."`
	JSON    bool   `name:"json" env:"-" help:"Print JSON instead of a table."`
}

// Help says what is measured.
func (benchCacheCmd) Help() string {
	return `Time to the first token of a prompt that is computed, and of one whose KV lies in the pool or comes from memory, from disk
after a restart, or from a server that another replica filled. All must give the same bits.

  quire bench cache qwen2.5-coder:0.5b --valkey local

What the tiers cost when they bring nothing, and when the shared one hangs: pairs of rounds, one after the other.

  quire bench cache --overhead --valkey local
  quire bench cache --pause 60s

How much of recorded traffic a server finds in its cache, over HTTP (quire sim traffic shows what it would):

  quire bench cache MODEL --trace mooncake.jsonl.gz --pool 1000 --ram 10000 --disk 50000`
}

// cacheReport is what one of the measurements gives.
type cacheReport interface{ Print(io.Writer) error }

// Run measures and reports.
func (cmd *benchCacheCmd) Run(ctx context.Context, c *console) (err error) {
	if cmd.Prefix < llm.DefaultBlockSize || cmd.Repeat < 1 {
		return usageError{fmt.Sprintf("bench cache: a prefix of %d tokens, %d times: want at least %d and 1",
			cmd.Prefix, cmd.Repeat, llm.DefaultBlockSize)}
	}
	if least := min(cmd.Rounds, cmd.Requests, cmd.Clients, cmd.Prompt, cmd.Output); least < 1 {
		return usageError{fmt.Sprintf("bench cache: rounds, requests, clients, prompt and output must be at least 1, one is %d", least)}
	}
	sources, err := catalog.ConfigFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	var local *cache.Server
	if cmd.Valkey == "local" || cmd.Pause > 0 {
		if local, err = cache.StartServer(ctx); err != nil {
			return fmt.Errorf("bench cache: %w", err)
		}
		defer func() { err = errors.Join(err, local.Close()) }()
		cmd.Valkey = local.URL
	}
	model := llm.Options{Model: cmd.Model, Catalog: catalog.New(sources), CPU: cmd.CPU, Threads: cmd.Threads}
	report, err := cmd.measure(ctx, c, model, local)
	if err != nil {
		return fmt.Errorf("bench cache: %w", err)
	}
	if cmd.JSON {
		e := json.NewEncoder(c.Out)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	} else {
		err = report.Print(c.Out)
	}
	failed := 0
	switch r := report.(type) {
	case *cache.Report:
		if !r.Equal {
			err = errors.Join(err, errors.New("bench cache: a source gave other bits than computing"))
		}
	case *cache.PairReport:
		failed = r.Failed
	case *cache.TraceReport:
		failed = r.Failed
	}
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("bench cache: %d requests failed", failed))
	}
	return err
}

// measure does what the flags ask for.
func (cmd *benchCacheCmd) measure(ctx context.Context, c *console, model llm.Options, local *cache.Server) (cacheReport, error) {
	progress := func(line string) { fmt.Fprintln(c.Err, line) }
	pair := cache.PairOptions{
		Model: model, Rounds: cmd.Rounds, Requests: cmd.Requests, Clients: cmd.Clients, Prompt: cmd.Prompt, Output: cmd.Output,
		Dir: cmd.Dir, Valkey: cmd.Valkey, Progress: progress,
	}
	switch {
	case cmd.Overhead:
		return cache.Overhead(ctx, pair)
	case cmd.Pause > 0:
		return cache.Pause(ctx, pair, local, cmd.Pause)
	case cmd.Trace != "":
		requests, err := readTraffic(cmd.Trace, cmd.Scale, cmd.First)
		if err != nil {
			return nil, err
		}
		return cache.Trace(ctx, cache.TraceOptions{
			Model: model, Requests: requests, Pool: cmd.Pool, RAM: cmd.RAM, Disk: cmd.Disk, Dir: cmd.Dir, Valkey: cmd.Valkey,
			Clients: cmd.Clients, Progress: progress,
		})
	}
	return cache.Run(ctx, cache.Options{
		Model: model, Prefix: cmd.Prefix, Repeat: cmd.Repeat, Dir: cmd.Dir, Valkey: cmd.Valkey, Progress: progress,
	})
}
