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

func (r referenceRunner) Vocab() int { return r.r.c.Vocab }

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

// tinyModels calls test for every tiny model that has a GGUF of the given type: those of testdata, and any others the
// shared golden data holds.
func tinyModels(t *testing.T, suffix string, test func(t *testing.T, f *golden.File, model string)) {
	t.Helper()
	paths, err := filepath.Glob("testdata/tiny/*/golden.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no tiny models: %v", err)
	}
	if dir, ok := sharedDir(); ok {
		more, err := filepath.Glob(filepath.Join(dir, "golden/tiny/*/golden.json"))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, more...)
	}
	seen := map[string]bool{}
	for _, path := range paths {
		name := filepath.Base(filepath.Dir(path))
		file := filepath.Join(filepath.Dir(path), name+"-"+suffix+".gguf")
		if _, err := os.Stat(file); err != nil || seen[name] {
			continue
		}
		seen[name] = true
		t.Run(name+"-"+suffix, func(t *testing.T) {
			f, err := golden.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			test(t, f, file)
		})
	}
}

// TestReferenceMatchesTransformers shows that the oracle of this package's tests is right: it agrees with the logits
// of Hugging Face transformers on every tiny model, to the rounding of their float32.
func TestReferenceMatchesTransformers(t *testing.T) {
	if testing.Short() {
		t.Skip("the reference in float64 takes its time")
	}
	tinyModels(t, "f16", func(t *testing.T, f *golden.File, file string) {
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

// TestTinyModels holds the forward pass to transformers' logits on every tiny model in every type it comes in.
func TestTinyModels(t *testing.T) {
	for _, c := range []struct {
		suffix    string
		precision golden.Precision
	}{{"f32", golden.Float}, {"f16", golden.Float}, {"q8_0", golden.Blocks}} {
		tinyModels(t, c.suffix, func(t *testing.T, f *golden.File, file string) {
			m := newMachine(t, open(t, file), setup{level: fastest(), threads: 2, tokens: f.LongestSequence()})
			report, err := golden.Compare(f, goldenRunner{t, m}, c.precision)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("max abs diff %.4f, mean KL %.3g, top 1 %.4f, greedy %v over %d steps",
				report.MaxAbsDiff, report.MeanKL, report.Top1Agreement, report.GreedyEqual, report.GreedySteps)
			if len(report.Broken) > 0 {
				t.Errorf("broken: %q", report.Broken)
			}
		})
	}
}
