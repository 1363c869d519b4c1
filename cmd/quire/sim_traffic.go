package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/quire-ai/quire/internal/sim"
	"github.com/quire-ai/quire/internal/workload"
)

// simTrafficCmd plays recorded traffic to the scheduler.
type simTrafficCmd struct {
	File    string `arg:"" help:"Trace of Mooncake, .jsonl or .jsonl.gz."`
	Scale   int    `default:"32" help:"Divides all lengths; a block of the trace becomes one of 512/scale tokens. Blocks are of 16 tokens."`
	First   int    `placeholder:"N" help:"Play the first N requests only."`
	Pool    int    `default:"1000" help:"Blocks of the KV cache."`
	RAM     int    `name:"ram" help:"Blocks in host memory."`
	Disk    int    `help:"Blocks on disk."`
	Clients int    `default:"1" help:"Requests at once."`
}

// Help says what is shown.
func (simTrafficCmd) Help() string {
	return `Shows how much of real prompts would be found in a KV cache and tiers of these sizes, by the real scheduler and block pool.`
}

// Run plays the trace and prints what was found where.
func (cmd *simTrafficCmd) Run(c *console) error {
	if cmd.Pool < 1 || cmd.RAM < 0 || cmd.Disk < 0 || cmd.Clients < 1 || cmd.First < 0 {
		return usageError{"sim traffic: pool and clients must be at least 1, nothing negative"}
	}
	requests, err := readTraffic(cmd.File, cmd.Scale, cmd.First)
	if err != nil {
		return fmt.Errorf("sim traffic: %w", err)
	}
	report, err := sim.Traffic(sim.TrafficOptions{
		Requests: requests, Pool: cmd.Pool, RAM: cmd.RAM, Disk: cmd.Disk, Clients: cmd.Clients,
	})
	if err != nil {
		return fmt.Errorf("sim traffic: %w", err)
	}
	return report.Print(c.Out)
}

// readTraffic reads the first n requests of a trace, all if n is 0.
func readTraffic(path string, scale, n int) ([]workload.Request, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	requests, err := workload.ReadMooncake(in, scale, n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return requests, nil
}
