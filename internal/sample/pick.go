package sample

import (
	"cmp"
	"math"
	"slices"

	"github.com/quire-ai/quire/internal/cpu"
)

// item is one candidate of a row: an index into it, the value there and, where it matters, its weight.
type item struct {
	index  int32
	value  float32
	weight float32
}

// order sorts the best first: larger values, then lower indices. It is total, so "the k best" is one set.
func order(a, b item) int {
	if c := cmp.Compare(b.value, a.value); c != 0 {
		return c
	}
	return cmp.Compare(a.index, b.index)
}

// before reports whether a is better than b in this order.
func (a item) before(b item) bool {
	return a.value > b.value || a.value == b.value && a.index < b.index
}

// picker draws one index of a row by temperature, min-p, top-k and top-p. Each truncation is a cut: the worst item that
// is kept. Since all use one order, they compose by taking the better cut, and the row itself is never copied or sorted.
//
// A token's weight is exp32 of its distance to the best after temperature (docs/arithmetic.md §9): chunks of logits are
// weighed at once, and chunks whose best logit has no weight are passed over.
//
// Its buffers grow to what the parameters need (top-k items, the bucket that top-p cuts through, one sum for each chunk)
// and are used again.
type picker struct {
	work    cpu.Logits
	row     *row
	scale   cpu.Weighing // to weigh with; its least is the cut's value or more
	cut     item         // the worst that is kept
	items   []item
	mass    []float64 // [bucket] for top-p, then [chunk] for the draw
	weights [chunkSize]float32
	logits  [chunkSize]float32 // of the chunk that the cut divides
}

const (
	// horizon is the distance in nats below the largest logit beyond which a token is not drawn: e^-40 is 4e-18, less
	// than the spacing of the uniform random numbers.
	horizon = 40
	// bucketsPerNat is the resolution at which top-p first looks for its cut.
	bucketsPerNat = 8
	bucketCount   = horizon * bucketsPerNat
	// gatherBuckets is how far top-p looks at once: few tokens are within 6 nats of the best.
	gatherBuckets = 6 * bucketsPerNat
)

// pick returns the index drawn by u in [0, 1). best is the best item of the row; its value is finite.
func (k *picker) pick(r *row, work cpu.Logits, best item, p *Params, u float64) int32 {
	depth := float64(horizon) // in nats after temperature
	if p.MinP > 0 {
		depth = min(depth, -log(p.MinP))
	}
	floor := float64(best.value) - float64(depth*p.Temperature)
	k.work, k.row = work, r
	k.scale = cpu.Weighing{Top: best.value, Inverse: float32(1 / p.Temperature)}
	k.cut = item{index: math.MaxInt32, value: ceil32(floor)}
	if p.TopK > 0 && p.TopK < len(r.logits) {
		k.cutTopK(p.TopK)
	}
	if p.TopP < 1 {
		k.cutTopP(p.TopP)
	}
	return k.draw(best, u)
}

// weigh sets the weights of a chunk and returns their sum: 0 for what the cut leaves out.
func (k *picker) weigh(i int) float64 {
	chunk, start := k.row.chunk(i)
	k.scale.Least = k.cut.value
	switch last := int(k.cut.index); {
	case last < start: // of the logits equal to the cut's, those after it are out
		k.scale.Least = math.Nextafter32(k.cut.value, float32(math.Inf(1)))
	case last < start+len(chunk)-1:
		chunk = k.logits[:copy(k.logits[:], chunk)]
		for n := last - start + 1; n < len(chunk); n++ {
			if chunk[n] == k.cut.value {
				chunk[n] = masked
			}
		}
	}
	if k.row.tops[i] < k.scale.Least {
		clear(k.weights[:len(chunk)])
		return 0
	}
	return float64(k.work.Weights(k.weights[:], chunk, k.scale))
}

// ceil32 returns the smallest float32 that is not below x.
func ceil32(x float64) float32 {
	f := float32(x)
	if float64(f) < x {
		f = math.Nextafter32(f, float32(math.Inf(1)))
	}
	return f
}

// cutTopK cuts after the n best items of the row.
func (k *picker) cutTopK(n int) {
	k.items = topK(k.items[:0], k.row, n)
	if worst := k.items[len(k.items)-1]; worst.before(k.cut) {
		k.cut = worst
	}
}

// topK appends the n best items of the row to dst, best first. It keeps the best so far in a heap with the worst on
// top, so most of the row costs one comparison.
func topK(dst []item, r *row, n int) []item {
	n = min(n, len(r.logits))
	if n <= 0 {
		return dst
	}
	base := len(dst)
	for i, value := range r.logits[:n] {
		dst = append(dst, item{index: int32(i), value: value})
	}
	heap := dst[base:]
	for i := n/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	for c := n / chunkSize; c < len(r.tops); c++ {
		if r.tops[c] <= heap[0].value { // at equal values the earlier index stays
			continue
		}
		chunk, start := r.chunk(c)
		for i := max(0, n-start); i < len(chunk); i++ {
			if chunk[i] > heap[0].value {
				heap[0] = item{index: int32(start + i), value: chunk[i]}
				sink(heap, 0)
			}
		}
	}
	slices.SortFunc(heap, order)
	return dst
}

// sink restores a heap, worst item on top, below position i.
func sink(heap []item, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if right := child + 1; right < len(heap) && heap[child].before(heap[right]) {
			child = right
		}
		if !heap[i].before(heap[child]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// cutTopP cuts after the item at which the probability of the items kept so far, summed best first, reaches p of their
// total. A histogram over the distance to the best, made from the best downwards, finds the bucket in which this happens;
// only that bucket is sorted.
func (k *picker) cutTopP(p float64) {
	k.mass = slices.Grow(k.mass[:0], bucketCount+1)[:bucketCount+1]
	clear(k.mass)
	total := 0.0
	for c := range k.row.tops {
		total += k.weigh(c)
	}
	k.items = k.items[:0]
	sum, target := 0.0, float64(p*total)
	bucket := 0
	for below := 0; bucket == below && below <= bucketCount; {
		from := below
		below = min(below+gatherBuckets, bucketCount+1)
		k.gather(from, below)
		for bucket < min(below, bucketCount) && sum+k.mass[bucket] < target {
			sum += k.mass[bucket]
			bucket++
		}
	}
	k.items = slices.DeleteFunc(k.items, func(it item) bool { return k.bucket(it.value) != bucket })
	slices.SortFunc(k.items, order)
	for _, it := range k.items {
		sum += float64(it.weight)
		if sum >= target {
			k.cut = it
			return
		}
	}
	// p of the total was lost to rounding: keep all
}

// gather appends the items that the cut keeps in buckets from to below-1, and adds their weights to the buckets' mass.
func (k *picker) gather(from, below int) {
	least := k.scale.Top - float32(below+1)/bucketsPerNat/k.scale.Inverse // a bucket deeper: no rounding matters
	for c, top := range k.row.tops {
		if top < least || k.weigh(c) == 0 {
			continue
		}
		chunk, start := k.row.chunk(c)
		for i, value := range chunk {
			if value < least || k.weights[i] == 0 {
				continue
			}
			if b := k.bucket(value); b >= from && b < below {
				k.items = append(k.items, item{int32(start + i), value, k.weights[i]})
				k.mass[b] += float64(k.weights[i])
			}
		}
	}
}

// bucket returns the bucket of a logit.
func (k *picker) bucket(value float32) int {
	z := float64(float64(k.scale.Top)-float64(value)) * float64(k.scale.Inverse)
	return min(int(z*bucketsPerNat), bucketCount)
}

// draw returns the item kept by the cut at which the running sum of weights, in index order, passes u of the total. The
// sums of chunks say where to look.
func (k *picker) draw(best item, u float64) int32 {
	k.mass = k.mass[:0]
	total := 0.0
	for c := range k.row.tops {
		sum := k.weigh(c)
		k.mass = append(k.mass, sum)
		total += sum
	}
	target := float64(u * total)
	chunk, sum := 0, 0.0
	for chunk < len(k.mass)-1 && sum+k.mass[chunk] <= target {
		sum += k.mass[chunk]
		chunk++
	}
	last := best.index
	k.weigh(chunk)
	logits, start := k.row.chunk(chunk)
	for i, w := range k.weights[:len(logits)] {
		if w == 0 {
			continue
		}
		last = int32(start + i)
		if sum += float64(w); sum > target {
			break
		}
	}
	return last
}
