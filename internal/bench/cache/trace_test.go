package cache

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/sim"
	"github.com/quire-ai/quire/internal/workload"
)

// first bounds the requests of each trace; -first 0 plays all, for ten minutes or so.
var first = flag.Int("first", 200, "play so many requests of each recorded trace, 0 for all")

// longModel is a tiny model whose context holds the longest request of the traces.
func longModel(t *testing.T) string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("..", "..", "model", "testdata", "tiny", "llama_gqa", "llama_gqa-f16.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("llama.context_length")
	at := bytes.Index(file, key) + len(key) + 4 // the value stands behind its type
	binary.LittleEndian.PutUint32(file[at:], 8192)
	path := filepath.Join(t.TempDir(), "long.gguf")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTraceEqualsSimulation serves the beginning of recorded traffic over HTTP, with a tiny model, and compares what is found with
// what the simulator finds for the same sizes: with the pool alone, and with ram and disk behind it.
func TestTraceEqualsSimulation(t *testing.T) {
	dir := os.Getenv("QUIRE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared")
	}
	model := longModel(t)
	for _, name := range []string{"mooncake_fast25_conversation.jsonl.gz", "mooncake_fast25_synthetic.jsonl.gz"} {
		data, err := os.ReadFile(filepath.Join(dir, "traces", name))
		if err != nil {
			t.Skip("NOT TESTED: the recorded traces are not here")
		}
		in, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		requests, err := workload.ReadMooncake(in, 32, *first)
		if err != nil {
			t.Fatal(err)
		}
		// A block of the tiny model is computed in less time than it is read from disk, and then it is rightly not read: ram has
		// all here that the disk has.
		for _, size := range []struct{ pool, ram, disk int }{{3000, 0, 0}, {1000, 50_000, 50_000}} {
			want, err := sim.Traffic(sim.TrafficOptions{Requests: requests, Pool: size.pool, RAM: size.ram, Disk: size.disk, Clients: 2})
			if err != nil {
				t.Fatal(err)
			}
			got, err := Trace(t.Context(), TraceOptions{
				Model: llm.Options{Model: model, Threads: 1}, Requests: requests, Clients: 2,
				Pool: size.pool, RAM: size.ram, Disk: size.disk, Dir: t.TempDir(), Progress: func(line string) { t.Log(line) },
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %+v blocks: served %.4f, simulated %.4f", name, size, got.Share(), want.Share())
			var table bytes.Buffer
			if err := got.Print(&table); err != nil {
				t.Error(err)
			}
			t.Log(table.String())
			if d := got.Share() - want.Share(); got.Failed > 0 || d < -0.02 || d > 0.02 {
				t.Errorf("%s: %d of %d requests failed; found %.4f of the tokens, the simulator %.4f",
					name, got.Failed, got.Requests, got.Share(), want.Share())
			}
		}
	}
}
