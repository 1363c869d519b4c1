package golden

import (
	"fmt"
	"path/filepath"
)

// Runner computes with the model under test.
type Runner interface {
	// Vocab is the number of logits in a row.
	Vocab() int
	// Logits feeds a sequence to the model and calls visit once for every position whose index want accepts, in
	// order, with the logits of the token after it. The slice is the callee's and valid during the call only.
	Logits(ids []int32, want func(pos int) bool, visit func(pos int, logits []float32)) error
	// Greedy returns the next n tokens after ids, always taking the highest logit and never stopping early.
	Greedy(ids []int32, n int) ([]int32, error)
}

// Precision says how exact the model under test can be, which sets the bounds.
type Precision uint8

const (
	// Float is for F32, F16 and BF16 weights: float32 activations, keys and values in f16.
	Float Precision = iota
	// Blocks is for block-quantised weights: activations are quantised to 8 bits.
	Blocks
)

// Bounds of the comparison and where they come from. The key-value cache in f16 costs up to 0.03 in a logit, 8-bit
// activations on the tiny models up to 0.8 with a divergence below 0.006; llama.cpp's own choices differ from the
// reference's only at margins up to 0.27, so 0.5 is where a quantised greedy choice must be the reference's.
const (
	boundFloatLogit  = 0.03
	boundBlockLogit  = 0.8
	boundBlockKL     = 0.006
	boundBlockMargin = 0.5
	// Other settings of llama.cpp, and other machines, move its own mean divergence by up to 10 percent.
	peerAllowance = 1.10
)

// Compare runs one golden file against the model.
func Compare(f *File, m Runner, p Precision) (*Report, error) {
	if err := f.checkVocab(m.Vocab()); err != nil {
		return nil, fmt.Errorf("compare with %s: %w", f.Path, err)
	}
	r := &Report{File: f.Path, GreedyEqual: true, Broken: []string{}}
	var err error
	if f.Real != nil {
		r.Kind, r.Name = "real", f.Real.Model+"/"+f.Real.Name
		err = r.compareReal(f.Real, m, p)
	} else {
		r.Kind, r.Name = "tiny", f.Tiny.Name
		err = r.compareTiny(f.Tiny, m, p)
	}
	if err != nil {
		return nil, fmt.Errorf("compare with %s: %w", f.Path, err)
	}
	return r, nil
}

func (r *Report) compareReal(g *Real, m Runner, p Precision) error {
	at := map[int]*Position{}
	for i := range g.Positions {
		at[g.Positions[i].Pos] = &g.Positions[i]
	}
	peer := len(g.Positions) > 0
	err := m.Logits(g.IDs, func(pos int) bool { return at[pos] != nil }, func(pos int, logits []float32) {
		want := at[pos]
		r.Positions++
		if !r.finite(logits, "position %d", pos) {
			return
		}
		kl, diff := estimateKL(want, logSoftmax(logits))
		r.klSum += kl
		r.MaxAbsDiff = max(r.MaxAbsDiff, diff)
		if argmax(logits) == want.TopIDs[0] {
			r.top1++
		}
		if want.LlamaCPP == nil {
			peer = false
		} else {
			r.klSumOfPeer += want.LlamaCPP.KLEstimate
		}
	})
	if err != nil {
		return err
	}
	r.finish()
	if r.Positions > 0 {
		r.MeanKL = r.klSum / float64(r.Positions)
	}
	if peer {
		mean := r.klSumOfPeer / float64(r.Positions)
		r.MeanKLOfPeer = &mean
	}
	margin := boundBlockMargin
	if p == Float {
		margin = boundFloatLogit
	}
	return r.compareGreedy(m, g.IDs, &g.Greedy, margin)
}

func (r *Report) compareTiny(g *Tiny, m Runner, p Precision) error {
	name, greedy, bestIDs := "logits_f32.npy", g.Greedy, g.Argmax
	bound, margin := boundFloatLogit, boundFloatLogit
	if p == Blocks {
		name, greedy, bestIDs = "logits_q8_0.npy", g.Q8.Greedy, g.Q8.Argmax
		bound, margin = boundBlockLogit, boundBlockMargin
	}
	want, err := readNPY(filepath.Join(g.dir, name))
	if err != nil {
		return err
	}
	if want.cols != m.Vocab() {
		return fmt.Errorf("%s has %d logits a row, the model's vocabulary has %d", name, want.cols, m.Vocab())
	}
	compared, outside := 0, 0
	for i, ids := range g.Prompts {
		err := m.Logits(ids, func(int) bool { return true }, func(pos int, logits []float32) {
			r.Positions++
			if !r.finite(logits, "prompt %d position %d", i, pos) {
				return
			}
			if best := argmax(logits); best == bestIDs[i][pos] {
				r.top1++
			} else if g.ArgmaxMargin[i][pos] > bound {
				r.breach("prompt %d position %d: best token %d, want %d by a margin of %.3f", i, pos, best, bestIDs[i][pos], g.ArgmaxMargin[i][pos])
			}
			row := g.Rows[i][0] + pos
			if p == Blocks { // only the last position of each prompt is stored
				if row = i; pos != len(ids)-1 {
					return
				}
			}
			if row >= want.rows {
				outside++
				return
			}
			compared++
			r.klSum += exactKL(want.row(row), logits)
			r.MaxAbsDiff = max(r.MaxAbsDiff, maxAbsDiff(want.row(row), logits))
		})
		if err != nil {
			return err
		}
	}
	if outside > 0 {
		return fmt.Errorf("%s has %d rows, %d positions lie outside", name, want.rows, outside)
	}
	r.finish()
	r.MeanKL = r.klSum / float64(max(compared, 1))
	if !(r.MaxAbsDiff <= bound) {
		r.breach("largest logit difference %.4f exceeds %.2f", r.MaxAbsDiff, bound)
	}
	if p == Blocks && !(r.MeanKL <= boundBlockKL) {
		r.breach("mean KL %.5f exceeds %.3f", r.MeanKL, boundBlockKL)
	}
	for i := range greedy {
		if err := r.compareGreedy(m, g.Prompts[greedy[i].Prompt], &greedy[i], margin); err != nil {
			return err
		}
	}
	return nil
}

// compareGreedy continues ids greedily and stops at the first step whose margin is below the bound: from there on
// either choice is right and the texts may part.
func (r *Report) compareGreedy(m Runner, ids []int32, want *Greedy, margin float64) error {
	n := 0
	for n < len(want.IDs) && want.Margins[n] >= margin {
		n++
	}
	r.GreedySteps += n
	if n == 0 {
		return nil
	}
	got, err := m.Greedy(ids, n)
	if err != nil {
		return err
	}
	if len(got) != n {
		return fmt.Errorf("greedy continuation has %d tokens, want %d", len(got), n)
	}
	for i := range got {
		if got[i] != want.IDs[i] {
			r.GreedyEqual = false
			r.breach("greedy step %d takes %d, want %d by a margin of %.3f", i, got[i], want.IDs[i], want.Margins[i])
			return nil
		}
	}
	return nil
}
