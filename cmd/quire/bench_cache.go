package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/quire-ai/quire/internal/bench/cache"
	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/llm"
)

// benchCacheCmd measures what a known prefix is worth.
type benchCacheCmd struct {
	Model string `arg:"" default:"smollm2:135m" help:"Name from quire list, hf:owner/repo/file, or path of a GGUF file."`

	Prefix  int    `default:"2000" env:"-" help:"Tokens that are known."`
	Repeat  int    `short:"r" default:"5" env:"-" help:"Times each source is measured."`
	Dir     string `env:"-" placeholder:"DIR" help:"Folder for the disk tier, such as one on the disk to measure; a temporary one by default."`
	Valkey  string `env:"-" placeholder:"URL" help:"Server for the shared tier; without one that row is left out."`
	CPU     string `name:"cpu" default:"auto" enum:"auto,generic,avx2,avx512vnni,amx" help:"Kernels to use."`
	Threads int    `short:"t" placeholder:"N" help:"Threads that compute; all the process may use by default."`
	JSON    bool   `name:"json" env:"-" help:"Print JSON instead of a table."`
}

// Help says what is measured.
func (benchCacheCmd) Help() string {
	return `Time to the first token of a prompt that is computed, and of one whose KV lies in the pool or comes from memory, from disk
after a restart, or from a server that another replica filled. All must give the same bits.

  quire bench cache qwen2.5-coder:0.5b --valkey redis://127.0.0.1:6379`
}

// Run measures and reports.
func (cmd *benchCacheCmd) Run(ctx context.Context, c *console) error {
	if cmd.Prefix < llm.DefaultBlockSize || cmd.Repeat < 1 {
		return usageError{fmt.Sprintf("bench cache: a prefix of %d tokens, %d times: want at least %d and 1",
			cmd.Prefix, cmd.Repeat, llm.DefaultBlockSize)}
	}
	sources, err := catalog.ConfigFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	report, err := cache.Run(ctx, cache.Options{
		Model:  llm.Options{Model: cmd.Model, Catalog: catalog.New(sources), CPU: cmd.CPU, Threads: cmd.Threads},
		Prefix: cmd.Prefix, Repeat: cmd.Repeat, Dir: cmd.Dir, Valkey: cmd.Valkey,
		Progress: func(line string) { fmt.Fprintln(c.Err, line) },
	})
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
	if !report.Equal {
		err = errors.Join(err, errors.New("bench cache: a source gave other bits than computing"))
	}
	return err
}
