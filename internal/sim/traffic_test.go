package sim

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/quire-ai/quire/internal/workload"
)

// recorded reads the first n requests of a recorded trace, which lies beside the module where CI runs.
func recorded(t *testing.T, name string, n int) []workload.Request {
	t.Helper()
	dir := os.Getenv("QUIRE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	data, err := os.ReadFile(filepath.Join(dir, "traces", name))
	if err != nil {
		t.Skip("NOT TESTED: the recorded traces are not here")
	}
	in, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	requests, err := workload.ReadMooncake(in, 32, n)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// unlimited counts the leading full blocks of prompts that came before: what a cache without limit would find, but for the
// block of the last token.
func unlimited(requests []workload.Request) (tokens int) {
	seen := map[int64]bool{}
	for i := range requests {
		r := &requests[i]
		usable := (r.Input - 1) / trafficBlock
		for _, id := range r.Blocks[:usable] {
			if !seen[id] {
				break
			}
			tokens += trafficBlock
		}
		for _, id := range r.Blocks[:r.Input/trafficBlock] {
			seen[id] = true
		}
	}
	return tokens
}

// TestTrafficIsFound: with room for everything each tier, and the pool, finds what a cache without limit finds; with less, a
// chain of tiers finds as much as one of their sizes together, about.
func TestTrafficIsFound(t *testing.T) {
	for _, name := range []string{"mooncake_fast25_conversation.jsonl.gz", "mooncake_fast25_synthetic.jsonl.gz"} {
		requests := recorded(t, name, 500)
		want := unlimited(requests)
		run := func(o TrafficOptions) *TrafficReport {
			t.Helper()
			o.Requests = requests
			r, err := Traffic(o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Requests != len(requests) {
				t.Fatalf("%d of %d requests were served", r.Requests, len(requests))
			}
			return r
		}
		if r := run(TrafficOptions{Pool: 40_000, Clients: 1}); r.Pool != want || r.RAM+r.Disk != 0 {
			t.Errorf("%s: a large pool finds %d tokens, want %d", name, r.Pool, want)
		}
		for tier, o := range map[string]TrafficOptions{"ram": {RAM: 40_000}, "disk": {Disk: 40_000}} {
			o.Pool, o.Clients = 600, 1
			if r := run(o); r.Pool+r.RAM+r.Disk != want {
				t.Errorf("%s: a large %s tier finds %d tokens, want %d", name, tier, r.Pool+r.RAM+r.Disk, want)
			}
		}
		alone, chain := run(TrafficOptions{Pool: 4000, Clients: 1}), run(TrafficOptions{Pool: 1000, RAM: 3000, Clients: 1})
		if d := alone.Share() - chain.Share(); d < -0.02 || d > 0.02 {
			t.Errorf("%s: 4,000 blocks of the pool find %.3f, 1,000 and 3,000 of ram %.3f", name, alone.Share(), chain.Share())
		}
	}
}
