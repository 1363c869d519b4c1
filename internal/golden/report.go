package golden

import "fmt"

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

func (r *Report) breach(format string, args ...any) {
	r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
}

// finite tells whether all logits are numbers, and reports the first that is not: it would spoil every figure.
func (r *Report) finite(logits []float32, where string, args ...any) bool {
	for id, v := range logits {
		if v-v != 0 {
			r.breach("%s: logit of token %d is %v", fmt.Sprintf(where, args...), id, v)
			return false
		}
	}
	return true
}

// finish turns sums into means.
func (r *Report) finish() {
	if r.Positions > 0 {
		r.Top1Agreement = float64(r.top1) / float64(r.Positions)
	}
}

// Summary adds up the reports of one model's real files: the mean divergence is judged over all their positions
// together, since a single short prompt says little.
type Summary struct {
	Positions    int      `json:"positions"`
	MeanKL       float64  `json:"mean_kl_estimate"`
	MeanKLOfPeer *float64 `json:"mean_kl_estimate_llamacpp,omitempty"`
	Broken       []string `json:"broken"`
}

// OK tells whether the bound holds; a nil Summary has none.
func (s *Summary) OK() bool { return s == nil || len(s.Broken) == 0 }

// Summarize returns the figures over all positions of the real reports, or nil when there are none.
func Summarize(reports []*Report) *Summary {
	s := Summary{Broken: []string{}}
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
		if !(s.MeanKL <= peer*peerAllowance) {
			s.Broken = append(s.Broken, fmt.Sprintf("mean KL estimate %.6f exceeds llama.cpp's %.6f by more than %.0f %%",
				s.MeanKL, peer, 100*(peerAllowance-1)))
		}
	}
	return &s
}
