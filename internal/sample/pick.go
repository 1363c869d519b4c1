package sample

import (
	"cmp"
	"math"
	"slices"
)

// item is one candidate of a row: an index into it and the value there.
type item struct {
	index int32
	value float32
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
// Its buffers grow to what the parameters need (top-k items, the bucket that top-p cuts through, one sum for each chunk)
// and are used again.
type picker struct {
	items []item
	mass  []float64 // [bucket] for top-p, then [chunk] for the draw
}

const (
	// horizon is the distance in nats below the largest logit beyond which a token is not drawn: e^-40 is 4e-18, less
	// than the spacing of the uniform random numbers.
	horizon = 40
	// bucketsPerNat is the resolution at which top-p first looks for its cut.
	bucketsPerNat = 8
	bucketCount   = horizon * bucketsPerNat
	// chunkSize is the number of logits under one partial sum of the draw.
	chunkSize = 256
)

// pick returns the index drawn by u in [0, 1). best is the best item of the row; its value is finite.
func (k *picker) pick(row []float32, best item, p *Params, u float64) int32 {
	inverse := 1 / p.Temperature
	depth := float64(horizon) // in nats after temperature
	if p.MinP > 0 {
		depth = min(depth, -log(p.MinP))
	}
	floor := float64(best.value) - float64(depth*p.Temperature)
	cut := item{index: math.MaxInt32, value: ceil32(floor)}
	if p.TopK > 0 && p.TopK < len(row) {
		cut = k.cutTopK(row, cut, p.TopK)
	}
	if p.TopP < 1 {
		cut = k.cutTopP(row, best, cut, p.TopP, inverse)
	}
	return k.draw(row, best, cut, u, inverse)
}

// ceil32 returns the smallest float32 that is not below x.
func ceil32(x float64) float32 {
	f := float32(x)
	if float64(f) < x {
		f = math.Nextafter32(f, float32(math.Inf(1)))
	}
	return f
}

// cutTopK returns the n-th best item of the row if it is better than cut.
func (k *picker) cutTopK(row []float32, cut item, n int) item {
	k.items = topK(k.items[:0], row, n)
	if worst := k.items[len(k.items)-1]; worst.before(cut) {
		return worst
	}
	return cut
}

// topK appends the n best items of the row to dst, best first. It keeps the best so far in a heap with the worst on
// top, so most of the row costs one comparison.
func topK(dst []item, row []float32, n int) []item {
	n = min(n, len(row))
	if n <= 0 {
		return dst
	}
	base := len(dst)
	for i, value := range row[:n] {
		dst = append(dst, item{int32(i), value})
	}
	heap := dst[base:]
	for i := n/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	for i := n; i < len(row); i++ {
		if row[i] > heap[0].value { // at equal values the earlier index stays
			heap[0] = item{int32(i), row[i]}
			sink(heap, 0)
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

// cutTopP returns the item at which the probability of the items kept by cut, summed best first, reaches p of their
// total. A histogram over the distance to the best finds the bucket in which this happens; only that bucket is sorted.
func (k *picker) cutTopP(row []float32, best, cut item, p, inverse float64) item {
	k.mass = slices.Grow(k.mass[:0], bucketCount+1)[:bucketCount+1]
	clear(k.mass)
	top, total := float64(best.value), 0.0
	for i, value := range row {
		if value < cut.value || value == cut.value && int32(i) > cut.index {
			continue
		}
		z := scaled(top, value, inverse)
		weight := exp(-z)
		k.mass[bucket(z)] += weight
		total += weight
	}
	sum, target := 0.0, float64(p*total)
	last := 0
	for last < bucketCount && sum+k.mass[last] < target {
		sum += k.mass[last]
		last++
	}
	k.items = k.items[:0]
	least := float32(top - float64(last+2)/bucketsPerNat/inverse) // below this bucket by a whole one
	for i, value := range row {
		if value < least {
			continue
		}
		it := item{int32(i), value}
		if !cut.before(it) && bucket(scaled(top, value, inverse)) == last {
			k.items = append(k.items, it)
		}
	}
	slices.SortFunc(k.items, order)
	for _, it := range k.items {
		sum += exp(-scaled(top, it.value, inverse))
		if sum >= target {
			return it
		}
	}
	return cut // p of the total was lost to rounding: keep all
}

// scaled returns the distance in nats between the best logit and another after temperature.
func scaled(top float64, value float32, inverse float64) float64 {
	return float64((top - float64(value)) * inverse)
}

func bucket(z float64) int { return min(int(z*bucketsPerNat), bucketCount) }

// draw returns the item kept by cut at which the running sum of probabilities, in index order, passes u of the total. The
// sums of chunks say where to look, so that each exponential is computed once and one chunk twice.
func (k *picker) draw(row []float32, best, cut item, u, inverse float64) int32 {
	k.mass = k.mass[:0]
	top, total := float64(best.value), 0.0
	for start := 0; start < len(row); start += chunkSize {
		sum := 0.0
		chunk := row[start:min(start+chunkSize, len(row))]
		for i, value := range chunk {
			if value > cut.value || value == cut.value && int32(start+i) <= cut.index {
				sum += exp(-scaled(top, value, inverse))
			}
		}
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
	start := chunk * chunkSize
	for i, value := range row[start:min(start+chunkSize, len(row))] {
		it := item{int32(start + i), value}
		if cut.before(it) {
			continue
		}
		last = it.index
		if sum += exp(-scaled(top, value, inverse)); sum > target {
			break
		}
	}
	return last
}
