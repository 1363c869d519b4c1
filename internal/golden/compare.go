package golden

import (
	"fmt"
	"math"
	"path/filepath"
)

// Runner computes with the model under test.
type Runner interface {
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

// Report is what Compare found.
type Report struct {
	File          string   `json:"file"`
	Name          string   `json:"name"`
	Kind          string   `json:"kind"` // "real" or "tiny"
	Positions     int      `json:"positions"`
	MeanKL        float64  `json:"mean_kl_estimate"`
	MeanKLOfPeer  *float64 `json:"mean_kl_estimate_llamacpp,omitempty"` // over the same positions
	Top1Agreement float64  `json:"top1_agreement"`
	MaxAbsDiff    float64  `json:"max_abs_diff"` // of logits (tiny) or of the stored top log-probabilities (real)
	GreedyEqual   bool     `json:"greedy_equal"` // equal up to the first step whose margin is too small to tell
	GreedySteps   int      `json:"greedy_steps"` // steps compared
	Broken        []string `json:"broken"`       // bounds that do not hold, each with its numbers

	klSum, klSumOfPeer float64
	top1               int
}

// Compare runs one golden file against the model.
func Compare(f *File, m Runner, p Precision) (*Report, error) {
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

func (r *Report) breach(format string, args ...any) { r.Broken = append(r.Broken, fmt.Sprintf(format, args...)) }

// finish turns sums into means.
func (r *Report) finish() {
	if r.Positions > 0 {
		r.Top1Agreement = float64(r.top1) / float64(r.Positions)
	}
}

func (r *Report) compareReal(g *Real, m Runner, p Precision) error {
	at := map[int]*Position{}
	for i := range g.Positions {
		at[g.Positions[i].Pos] = &g.Positions[i]
	}
	peer := len(g.Positions) > 0
	err := m.Logits(g.IDs, func(pos int) bool { return at[pos] != nil }, func(pos int, logits []float32) {
		want := at[pos]
		q := logSoftmax(logits)
		kl, diff := estimateKL(want, q)
		r.Positions++
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
		if !(r.MeanKL <= mean*peerAllowance) {
			r.breach("mean KL estimate %.6f exceeds llama.cpp's %.6f by more than %.0f %%", r.MeanKL, mean, 100*(peerAllowance-1))
		}
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
	compared := 0
	for i, ids := range g.Prompts {
		err := m.Logits(ids, func(int) bool { return true }, func(pos int, logits []float32) {
			r.Positions++
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
			compared++
			r.klSum += exactKL(want.row(row), logits)
			r.MaxAbsDiff = max(r.MaxAbsDiff, maxAbsDiff(want.row(row), logits))
		})
		if err != nil {
			return err
		}
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

// Summary adds up the reports of one model's real files: the mean divergence is judged over all their positions
// together, since a single short prompt says little.
type Summary struct {
	Positions    int      `json:"positions"`
	MeanKL       float64  `json:"mean_kl_estimate"`
	MeanKLOfPeer *float64 `json:"mean_kl_estimate_llamacpp,omitempty"`
}

// Summarize returns the figures over all positions of the real reports, or nil when there are none.
func Summarize(reports []*Report) *Summary {
	var s Summary
	var kl, peer float64
	known := true
	for _, r := range reports {
		if r.Kind != "real" {
			continue
		}
		s.Positions += r.Positions
		kl += r.klSum
		peer += r.klSumOfPeer
		known = known && r.MeanKLOfPeer != nil
	}
	if s.Positions == 0 {
		return nil
	}
	s.MeanKL = kl / float64(s.Positions)
	if known {
		peer /= float64(s.Positions)
		s.MeanKLOfPeer = &peer
	}
	return &s
}

// estimateKL is the unbiased estimate of KL(reference || ours) from a stored position, and the largest difference of a
// top log-probability. q are our log-probabilities over the whole vocabulary. With R the reference's mass outside the
// top ids it is
//
//	Σ top [exp(p)(p−q) + exp(q) − exp(p)]  +  R/n · Σ tail [(p−q) + exp(q−p) − 1],
//
// every term of which is non-negative.
func estimateKL(want *Position, q func(id int32) float64) (kl, diff float64) {
	rest := 1.0
	for i, id := range want.TopIDs {
		p, ours := want.TopLogprobs[i], q(id)
		rest -= math.Exp(p)
		kl += math.Exp(p)*(p-ours) + math.Exp(ours) - math.Exp(p)
		diff = max(diff, math.Abs(p-ours))
	}
	if rest <= 0 || len(want.TailIDs) == 0 {
		return kl, diff
	}
	tail := 0.0
	for i, id := range want.TailIDs {
		p, ours := want.TailLogprobs[i], q(id)
		tail += (p - ours) + math.Exp(ours-p) - 1
	}
	return kl + rest/float64(len(want.TailIDs))*tail, diff
}

// logSoftmax returns the log-probability of an id under logits.
func logSoftmax(logits []float32) func(id int32) float64 {
	top := float64(logits[argmax(logits)])
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - top)
	}
	norm := top + math.Log(sum)
	return func(id int32) float64 { return float64(logits[id]) - norm }
}

// exactKL is KL(want || got) over the whole vocabulary.
func exactKL(want, got []float32) float64 {
	p, q := logSoftmax(want), logSoftmax(got)
	kl := 0.0
	for id := range want {
		kl += math.Exp(p(int32(id))) * (p(int32(id)) - q(int32(id)))
	}
	return kl
}

func maxAbsDiff(a, b []float32) float64 {
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(float64(a[i])-float64(b[i]))) // max keeps a NaN
	}
	return d
}

// argmax returns the lowest id among those with the highest logit.
func argmax(logits []float32) int32 {
	best := 0
	for i, l := range logits {
		if l > logits[best] {
			best = i
		}
	}
	return int32(best)
}
