package sim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quire-ai/quire/internal/invariant"
)

// sharedDir returns the folder of recordings beside the module, or skips the test where there is none.
func sharedDir(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("QUIRE_SHARED"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			shared := filepath.Join(filepath.Dir(dir), "shared")
			if _, err := os.Stat(shared); err == nil {
				return shared
			}
		}
	}
	t.Skip("no recorded traces beside the module")
	return ""
}

func TestRecordedTraces(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedDir(t), "oracle", "train", "*.gz"))
	if err != nil {
		t.Fatal(err)
	}
	hazards, err := filepath.Glob(filepath.Join(sharedDir(t), "oracle", "train", "hazards", "*.gz"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[Verdict]int{}
	for i, f := range append(files, hazards...) {
		if invariant.Enabled && testing.Short() && i%8 != 0 {
			continue // an audit after each event makes it long
		}
		trace, err := ReadTraceFile(f)
		if err != nil {
			t.Fatal(err)
		}
		r := Replay(trace)
		counts[r.Verdict]++
		switch r.Verdict {
		case Failed:
			t.Errorf("%s %v: %v", filepath.Base(f), trace.Header.Features, r)
		case Differs:
			t.Logf("%s: %v (%s)", filepath.Base(f), r, r.Why)
		}
	}
	t.Logf("%v", counts)
}

// TestRecordedPairs replays recordings of what comes together seldom: windows and drafts, pauses and loads, grammars and
// priorities. See testdata/recorded/README.md.
func TestRecordedPairs(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, f := range files {
		if r := ReplayFile(f); r.Verdict != Equal {
			t.Errorf("%s: %v", filepath.Base(f), r)
		}
	}
}
