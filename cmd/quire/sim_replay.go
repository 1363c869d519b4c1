package main

import (
	"fmt"
	"os"

	"github.com/quire-ai/quire/internal/record"
)

// simReplayCmd replays records of real runs.
type simReplayCmd struct {
	Files []string `arg:"" name:"file" help:"Records, as quire serve --record-schedule writes them."`
}

// Run prints what each record holds. It fails at the first whose replay decides otherwise.
func (cmd *simReplayCmd) Run(c *console) error {
	for _, name := range cmd.Files {
		res, err := replayFile(name)
		if err != nil {
			return fmt.Errorf("sim replay: %s: %w", name, err)
		}
		s := res.Stats
		fmt.Fprintf(c.Out, "%s: %d requests, %d plans equal, %d preemptions, %d tokens recomputed, %d generated\n",
			name, res.Requests, res.Plans, s.Preemptions, s.RecomputedTokens, s.GeneratedTokens)
		if res.Cut {
			fmt.Fprintf(c.Out, "%s: the last line is incomplete: the server was stopped while it wrote\n", name)
		}
	}
	return nil
}

func replayFile(name string) (record.Result, error) {
	file, err := os.Open(name)
	if err != nil {
		return record.Result{}, err
	}
	defer file.Close()
	return record.Replay(file)
}
