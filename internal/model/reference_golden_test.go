package model

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/quire-ai/quire/internal/golden"
)

// referenceRunner lets package golden run the reference.
type referenceRunner struct{ r *reference }

func (r referenceRunner) Logits(ids []int32, want func(int) bool, visit func(int, []float32)) error {
	for pos, row := range r.r.logits(ids) {
		if !want(pos) {
			continue
		}
		logits := make([]float32, len(row))
		for i, v := range row {
			logits[i] = float32(v)
		}
		visit(pos, logits)
	}
	return nil
}

func (r referenceRunner) Greedy(ids []int32, n int) ([]int32, error) {
	ids = append([]int32(nil), ids...)
	for range n {
		all := r.r.logits(ids)
		last, best := all[len(all)-1], 0
		for i, v := range last {
			if v > last[best] {
				best = i
			}
		}
		ids = append(ids, int32(best))
	}
	return ids[len(ids)-n:], nil
}

// TestReferenceMatchesTransformers shows that the oracle of this package's tests is right: it agrees with the logits
// of Hugging Face transformers on every tiny model, to the rounding of their float32.
func TestReferenceMatchesTransformers(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(sharedDir(t), "golden/tiny/*/golden.json"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no tiny models: %v", err)
	}
	for _, path := range dirs {
		name := filepath.Base(filepath.Dir(path))
		file := filepath.Join(filepath.Dir(path), name+"-f32.gguf")
		if _, err := os.Stat(file); err != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f, err := golden.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			report, err := golden.Compare(f, referenceRunner{newReference(t, open(t, file))}, golden.Float)
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Broken) > 0 {
				t.Errorf("broken: %q", report.Broken)
			}
			if !(report.MaxAbsDiff < 1e-4) || math.IsNaN(report.MeanKL) {
				t.Errorf("max abs diff %g, mean KL %g; want below 1e-4 (float32 logits of deviation 2)", report.MaxAbsDiff, report.MeanKL)
			}
		})
	}
}
