package sched_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/sim"
)

var rewrite = flag.Bool("rewrite", false, "write the outputs that the transcripts really have")

// TestTranscripts runs the plays of testdata. Those named bugNN are rows of a list of public bug reports, those named
// for an issue number are that issue. Run with -rewrite after a change and read the difference.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out, err := sim.RunScript(src)
			if strings.Contains(string(out), "FAULT") {
				t.Errorf("%s: the transcript shows a fault", name)
			}
			if *rewrite {
				if err := os.WriteFile(name, out, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
