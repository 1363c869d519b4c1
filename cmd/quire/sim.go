package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quire-ai/quire/internal/sim"
	"github.com/quire-ai/quire/sched"
)

// simCmd runs the real scheduler without a model.
type simCmd struct {
	Trace   simTraceCmd   `cmd:"" help:"Replay recorded schedules and compare every decision."`
	Run     simRunCmd     `cmd:"" help:"Play made-up scenarios with every check on."`
	Explore simExploreCmd `cmd:"" help:"Search every state of tiny machines."`
	Traffic simTrafficCmd `cmd:"" help:"Play recorded traffic, and show how much of it is found in the cache and its tiers."`
	Script  simScriptCmd  `cmd:"" help:"Run plays for the scheduler and compare what they print."`
	Replay  simReplayCmd  `cmd:"" help:"Replay what quire serve --record-schedule wrote, and compare every plan."`
}

// simScriptCmd runs scripts in the language of docs/simulation.md.
type simScriptCmd struct {
	Files   []string `arg:"" name:"file" help:"Scripts."`
	Rewrite bool     `help:"Write the outputs that the scripts really have into the files."`
}

// Run prints the blocks whose output is not what is written, and a line for each file. It fails if one differs.
func (cmd *simScriptCmd) Run(c *console) error {
	failed := 0
	for _, name := range cmd.Files {
		src, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("sim script: %w", err)
		}
		out, err := sim.RunScript(src)
		switch {
		case err == nil:
			fmt.Fprintf(c.Out, "%s: ok\n", name)
		case cmd.Rewrite && out != nil:
			if err := os.WriteFile(name, out, 0o644); err != nil {
				return fmt.Errorf("sim script: %w", err)
			}
			fmt.Fprintf(c.Out, "%s: rewritten\n", name)
		default:
			failed++
			fmt.Fprintf(c.Out, "%s: %v\n", name, err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("sim script: %d of %d scripts differ", failed, len(cmd.Files))
	}
	return nil
}

// simTraceCmd replays recorded traces through the scheduler.
type simTraceCmd struct {
	Paths    []string `arg:"" optional:"" name:"path" help:"Trace files (.jsonl or .jsonl.gz), or folders that are searched for them."`
	Features bool     `help:"Print the features of traces that can be replayed, and exit. Traces with others are skipped."`
	Verbose  bool     `short:"v" help:"Say also what the first difference is where a rule made one."`
}

// Run prints one line for each trace and a closing line of counts. It fails if a trace failed.
func (cmd *simTraceCmd) Run(c *console) error {
	if cmd.Features {
		for _, f := range sim.Features() {
			fmt.Fprintln(c.Out, f)
		}
		return nil
	}
	if len(cmd.Paths) == 0 {
		return usageError{"sim trace: no path given"}
	}
	files, err := traceFiles(cmd.Paths)
	if err != nil {
		return fmt.Errorf("sim trace: %w", err)
	}
	counts := map[sim.Verdict]int{}
	for _, name := range files {
		r := sim.ReplayFile(name)
		counts[r.Verdict]++
		fmt.Fprintf(c.Out, "%s: %v\n", name, r)
		if cmd.Verbose && r.Verdict == sim.Differs {
			fmt.Fprintf(c.Out, "    %s\n", r.Why)
		}
	}
	fmt.Fprintf(c.Out, "%d traces: %d equal, %d differ by rule, %d drained, %d skipped, %d failed\n", len(files),
		counts[sim.Equal], counts[sim.Differs], counts[sim.Drained], counts[sim.Skipped], counts[sim.Failed])
	if n := counts[sim.Failed]; n > 0 {
		return fmt.Errorf("sim trace: %d of %d traces failed", n, len(files))
	}
	return nil
}

// traceFiles returns the traces among paths, those in folders in order of name.
func traceFiles(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			isTrace := strings.HasSuffix(name, ".jsonl.gz") || strings.HasSuffix(name, ".jsonl")
			if err == nil && !d.IsDir() && isTrace && d.Name() != "index.jsonl" {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, errors.New("no traces found")
	}
	return slices.Compact(files), nil
}

// simRunCmd plays scenarios made up from seeds.
type simRunCmd struct {
	Seed    uint64 `default:"1" help:"First seed."`
	Count   uint64 `default:"100" help:"Number of seeds."`
	Profile string `default:"mixed" enum:"mixed,pressure,priority,loads,pipeline,groups,tiers,drafts" help:"Kind of scenario: ${enum}."`
	Trace   string `type:"path" help:"Write the schedule of the last seed to this file, in the format of recorded traces."`
	Shrink  bool   `help:"Reduce a failing scenario to a smaller one before it is printed or written."`
}

// Run plays the seeds and prints what they came to. It fails on the first fault, with the command that shows it again.
func (cmd *simRunCmd) Run(ctx context.Context, c *console) error {
	steps, requests, preemptions := 0, 0, 0
	rules := map[sched.Rule]int{}
	for seed := cmd.Seed; seed < cmd.Seed+cmd.Count; seed++ {
		if ctx.Err() != nil {
			return interruptedError{fmt.Sprintf("%d of %d seeds, without a fault", seed-cmd.Seed, cmd.Count)}
		}
		h, err := sim.Scenario(seed, cmd.Profile)
		if err != nil {
			return fmt.Errorf("sim run: %w", err)
		}
		out := sim.Run(h, false)
		steps, requests, preemptions = steps+out.Steps, requests+out.Requests, preemptions+out.Preemptions
		for rule, n := range out.Rules {
			rules[rule] += n
		}
		last := seed == cmd.Seed+cmd.Count-1
		if out.Fault != "" && cmd.Shrink {
			h = sim.Shrink(h)
			out = sim.Run(h, false)
		}
		if cmd.Trace != "" && (last || out.Fault != "") {
			if err := writeTrace(cmd.Trace, h); err != nil {
				return fmt.Errorf("sim run: %w", err)
			}
		}
		if out.Fault != "" {
			again := fmt.Sprintf("quire sim run --seed %d --count 1 --profile %s --shrink --trace fault.jsonl", seed, cmd.Profile)
			return fmt.Errorf("sim run: seed %d (%s, %d requests): %s\nrun again: %s", seed, h.Kind, len(h.Requests), out.Fault, again)
		}
	}
	fmt.Fprintf(c.Out, "%d scenarios: %d requests, %d steps, %d preemptions; every text as in the solo run, everything drained\n",
		cmd.Count, requests, steps, preemptions)
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		fmt.Fprintf(c.Out, "rule %v: %d uses\n", rule, rules[rule])
	}
	return nil
}

// writeTrace runs a scenario once more and writes its schedule.
func writeTrace(name string, h *sim.Header) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := sim.WriteTrace(f, h, sim.Run(h, true)); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// simExploreCmd searches all interleavings of events on tiny machines.
type simExploreCmd struct {
	Large bool   `help:"Run the large searches too: minutes."`
	Only  string `help:"Run only the searches whose name contains this."`
}

// Run prints a line for each search. A fault is printed as the shortest play that leads to it, and fails the command.
func (cmd *simExploreCmd) Run(ctx context.Context, c *console) error {
	for _, e := range sim.Explorations() {
		if e.Large && !cmd.Large || !strings.Contains(e.Name, cmd.Only) {
			continue
		}
		found, err := sim.Explore(ctx, e)
		if ctx.Err() != nil {
			return interruptedError{fmt.Sprintf("%d states of the search %q, without a fault", found.States, e.Name)}
		}
		if err != nil {
			return fmt.Errorf("sim explore: %w", err)
		}
		if found.Fault != "" {
			fmt.Fprintf(c.Out, "# %s: %s\n%s\n----\n", e.Name, found.Fault, strings.Join(found.Play, "\n"))
			return fmt.Errorf("sim explore: %s: %s", e.Name, found.Fault)
		}
		fmt.Fprintf(c.Out, "%s: %d states, %d edges: every invariant holds, every fair continuation ends\n", e.Name, found.States, found.Edges)
	}
	return nil
}
