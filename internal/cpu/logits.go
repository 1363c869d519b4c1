package cpu

import "math"

// Logits does with rows of logits what a sampler needs, piece by piece, with the kernels of a level. Any number of
// goroutines may use one.
type Logits struct{ kernels kernels }

// LogitsAt returns the work on logits at a level, which must be supported.
func LogitsAt(l Level) Logits { return Logits{kernelsOf(l)} }

// Logits returns the work on logits at the device's level.
func (d *Device) Logits() Logits { return Logits{d.kernels} }

// Greatest returns the greatest of x, or NaN if one of them is not a finite number.
func (l Logits) Greatest(x []float32) float32 { return l.kernels.greatest(x) }

// Weights sets dst to exp32((x - top) · inverse), or 0 where x is less than least, and returns the sum, in 16 lanes
// added by the tree (docs/arithmetic.md §9).
func (l Logits) Weights(dst, x []float32, w Weighing) float32 {
	return l.kernels.weights(dst[:len(x)], x, w)
}

// Weighing says how logits become weights: the greatest logit, whose weight is 1, the inverse of the temperature, and
// the least logit that has a weight.
type Weighing struct{ Top, Inverse, Least float32 }

func greatest(x []float32) float32 {
	top := float32(math.Inf(-1))
	for _, v := range x {
		if v-v != 0 {
			return float32(math.NaN())
		}
		top = max(top, v)
	}
	return top
}

func weights(dst, x []float32, w Weighing) float32 {
	var sums [lanes]float32
	weigh16(&sums, dst, x, w)
	return sumTree(&sums)
}

// weigh16 adds the weights to sums.
func weigh16(sums *[lanes]float32, dst, x []float32, w Weighing) {
	for i, v := range x {
		dst[i] = 0
		if v >= w.Least {
			dst[i] = exp32(mul32(sub32(v, w.Top), w.Inverse))
		}
		sums[i%lanes] = add32(sums[i%lanes], dst[i])
	}
}
