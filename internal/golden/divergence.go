package golden

import "math"

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
