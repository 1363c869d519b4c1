package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/quire-ai/quire/internal/bench/pressure"
	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/llm"
)

// benchPressureCmd is quire bench pressure.
type benchPressureCmd struct {
	Model string `arg:"" default:"smollm2:135m" help:"Name from quire list, hf:owner/repo/file, or path of a GGUF file."`

	BlockSize   []int    `default:"16" env:"-" placeholder:"N" help:"Tokens in a block; several are tried one after the other."`
	Budget      []int    `default:"512" env:"-" placeholder:"N" help:"Most tokens of a step; several are tried."`
	PrefixCache string   `default:"on" enum:"on,off,both" env:"-" help:"Whether prompts that begin alike share blocks: on, off or both."`
	Full        bool     `env:"-" help:"Try block sizes 16 and 32, budgets 512 and 4096, with and without prefix cache."`
	Waves       int      `default:"3" env:"-" help:"Times that each case is run."`
	Cases       []string `env:"-" placeholder:"NAME" help:"Cases to run: C1, C2, C4, C6, C7, C8, C10, X1 … X4; all by default."`
	Scale       int      `default:"1" env:"-" help:"Divides the cache and all lengths, for a quick test: 1, 2, 4 or 8."`

	CPU     string `name:"cpu" default:"auto" enum:"auto,generic,avx2,avx512vnni,amx" help:"Kernels to use."`
	Threads int    `placeholder:"N" help:"Threads that compute; all the process may use by default."`
	JSON    bool   `name:"json" env:"-" help:"Print the report as JSON."`
}

// Help is shown below the flags.
func (benchPressureCmd) Help() string {
	return "Thirty clients ask at once, half of them for a stream, on a server of this process whose KV cache holds 4,096 tokens.\n" +
		"Every request must get one answer of the length asked for, with the tokens it gets alone. The exit code is 1 if\n" +
		"anything that is checked does not hold."
}

// Run tests and reports.
func (cmd *benchPressureCmd) Run(ctx context.Context, c *console) error {
	if !slices.Contains([]int{1, 2, 4, 8}, cmd.Scale) {
		return usageError{fmt.Sprintf("--scale %d: want 1, 2, 4 or 8", cmd.Scale)}
	}
	sources, err := catalog.ConfigFromEnv(os.Getenv)
	if err != nil {
		return err
	}
	o := pressure.Options{
		Model:      llm.Options{Model: cmd.Model, Catalog: catalog.New(sources), CPU: cmd.CPU, Threads: cmd.Threads},
		BlockSizes: cmd.BlockSize, Budgets: cmd.Budget, Waves: cmd.Waves, Cases: cmd.Cases, Scale: cmd.Scale,
		PrefixCaching: map[string][]bool{"on": {true}, "off": {false}, "both": {true, false}}[cmd.PrefixCache],
		Progress:      func(line string) { fmt.Fprintln(c.Err, line) },
	}
	if cmd.Full {
		o.BlockSizes, o.Budgets, o.PrefixCaching = []int{16, 32}, []int{512, 4096}, []bool{true, false}
	}
	report, err := pressure.Run(ctx, o)
	if report != nil {
		if perr := cmd.print(c, report); perr != nil {
			return perr
		}
	}
	if err != nil {
		return fmt.Errorf("bench pressure: %w", err)
	}
	if n := report.Faults(); n > 0 {
		return fmt.Errorf("bench pressure: %d faults", n)
	}
	return nil
}

func (cmd *benchPressureCmd) print(c *console, report *pressure.Report) error {
	if !cmd.JSON {
		return report.Print(c.Out)
	}
	e := json.NewEncoder(c.Out)
	e.SetIndent("", "  ")
	return errors.Join(e.Encode(report))
}
