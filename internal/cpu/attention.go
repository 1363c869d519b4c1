package cpu

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"
)

// AttentionOptions are what a layer's attention needs beside queries, keys and values.
type AttentionOptions struct {
	Heads   int     // query heads; a multiple of the cache's KVHeads, consecutive ones share a key head
	Scale   float32 // of the scores, usually 1/sqrt(HeadDim)
	Window  int     // positions a query sees, its own included (sliding window); 0 is all
	Softcap float32 // limit of limit·tanh(score/limit), or 0 for none
}

const (
	// splitTokens is the part of the context whose softmax is computed as one; parts begin at multiples of it,
	// whatever the block size and the chunks, and are merged in order.
	splitTokens = 256
	// groupQueries limits the queries (rows × heads of a group) that share a loaded tile.
	groupQueries = 48
)

// Attention sets dst's rows, each Heads × HeadDim values, to the attention of the queries in q over the cache, whose
// keys and values of these rows have been written. Row r of q begins at r·stride (docs/arithmetic.md §8).
func (d *Device) Attention(dst *Acts, q []float32, stride int, kv *KV, layer int, seqs []Seq, o AttentionOptions) {
	j := &d.attention
	dim := kv.shape.HeadDim
	if o.Heads < 1 || o.Heads%kv.shape.KVHeads != 0 || dst.Cols != o.Heads*dim {
		panic(fmt.Sprintf("attention: %d query heads of %d over %d key heads into %d columns", o.Heads, dim, kv.shape.KVHeads, dst.Cols))
	}
	j.d, j.dst, j.q, j.stride, j.kv, j.layer, j.seqs, j.o = d, dst, q, stride, kv, layer, seqs, o
	j.perKey = o.Heads / kv.shape.KVHeads
	j.plan()
	d.pool.do(len(j.units), j)
}

// attentionJob has a chunk for each unit.
type attentionJob struct {
	d      *Device
	dst    *Acts
	q      []float32
	stride int
	kv     *KV
	layer  int
	seqs   []Seq
	o      AttentionOptions
	perKey int // query heads that share a key head

	units []attentionUnit
	// When there are fewer groups than workers want, each split of a group is a unit of its own: it leaves its result
	// in parts, and the last one to finish merges them in order.
	parts   []partial
	memory  []float32 // of parts
	pending []atomic.Int32
}

// attentionUnit is the work on some consecutive rows of a sequence and one key head, over splits first to last.
type attentionUnit struct {
	seq, row, rows int // rows of the sequence, from its own first
	head           int // key head
	first, last    int // splits
	group          int // index of pending, -1 for a unit that has all splits of its rows
	part           int // of parts
	parts          int // the group's, from part - (first - the group's first)
	firstPart      int
}

// partial is the attention of some queries over a part of the context: for each the greatest score, the sum of
// e^(score - greatest), and the sum of the values weighted with these.
type partial struct {
	queries, dim int
	top, sum     []float32 // [query]
	acc          []float32 // [query][dim]
}

func partialFloats(queries, dim int) int { return queries * (2 + dim) }

func newPartial(memory []float32, queries, dim int) partial {
	return partial{queries, dim, memory[:queries], memory[queries : 2*queries], memory[2*queries:][:queries*dim]}
}

// plan lists the units.
func (j *attentionJob) plan() {
	j.units = j.units[:0]
	rows := max(1, min(16, groupQueries/j.perKey))
	groups := 0
	for _, s := range j.seqs {
		groups += (s.Rows + rows - 1) / rows
	}
	groups *= j.kv.shape.KVHeads
	split := groups < 4*j.d.Threads() && j.d.Threads() > 1
	floats, pending := 0, 0
	for i, s := range j.seqs {
		for row := 0; row < s.Rows; row += rows {
			for head := range j.kv.shape.KVHeads {
				u := attentionUnit{seq: i, row: row, rows: min(rows, s.Rows-row), head: head, group: -1}
				u.first = j.start(s.Pos+row) / splitTokens
				u.last = (s.Pos + row + u.rows - 1) / splitTokens
				if !split || u.first == u.last {
					j.units = append(j.units, u)
					continue
				}
				u.group, u.firstPart, u.parts = pending, len(j.units), u.last-u.first+1
				floats = j.splitUnit(u, floats)
				pending++
			}
		}
	}
	j.prepareParts(floats, pending)
}

// splitUnit appends a unit for each split of u.
func (j *attentionJob) splitUnit(u attentionUnit, floats int) int {
	first, last := u.first, u.last
	for s := first; s <= last; s++ {
		u.first, u.last, u.part = s, s, floats
		j.units = append(j.units, u)
		floats += partialFloats(u.rows*j.perKey, j.kv.shape.HeadDim)
	}
	return floats
}

// prepareParts makes room for the results of units that are merged by another.
func (j *attentionJob) prepareParts(floats, pending int) {
	if cap(j.memory) < floats {
		j.memory = make([]float32, floats+floats/2)
	}
	if cap(j.pending) < pending {
		j.pending = make([]atomic.Int32, pending*2)
	}
	j.pending = j.pending[:cap(j.pending)]
	j.parts = j.parts[:0]
	for _, u := range j.units {
		var p partial
		if u.group >= 0 {
			p = newPartial(j.memory[u.part:], u.rows*j.perKey, j.kv.shape.HeadDim)
			j.pending[u.group].Store(int32(u.parts))
		}
		j.parts = append(j.parts, p)
	}
}

// start is the first position that the query at pos sees.
func (j *attentionJob) start(pos int) int {
	if j.o.Window == 0 {
		return 0
	}
	return max(0, pos-j.o.Window+1)
}

func (j *attentionJob) run(worker, chunk int) {
	u := j.units[chunk]
	dim, queries := j.kv.shape.HeadDim, u.rows*j.perKey
	size := partialFloats(queries, dim)
	joined := 0
	if j.kv.tile < lanes {
		joined = 1
	}
	b := j.d.buffer(worker, 2*size+queries*(dim+splitTokens+2)+splitTokens*dim*joined)
	w := attentionScratch{
		total:   newPartial(b, queries, dim),
		part:    newPartial(b[size:], queries, dim),
		q:       b[2*size:][:queries*dim],
		scores:  b[2*size+queries*dim:][:queries*splitTokens],
		weights: b[2*size+queries*(dim+splitTokens):][:2*queries],
		tile:    b[2*size+queries*(dim+splitTokens+2):],
		joined:  joined,
	}
	places := splitTokens / lanes * (1 + dim/lanes)
	table := j.d.table(worker, 2*places)
	w.table, w.later = table[:places], table[places:]
	j.gather(w.q, u)
	if u.group >= 0 {
		j.split(chunk, u.first, j.parts[chunk], &w)
		if j.pending[u.group].Add(-1) > 0 {
			return
		}
		w.total = j.parts[u.firstPart]
		for i := 1; i < u.parts; i++ {
			j.merge(&w.total, &j.parts[u.firstPart+i], &w)
		}
	} else {
		j.split(chunk, u.first, w.total, &w)
		for s := u.first + 1; s <= u.last; s++ {
			j.split(chunk, s, w.part, &w)
			j.merge(&w.total, &w.part, &w)
		}
	}
	j.finish(&w.total, u)
}

// attentionScratch is a worker's memory for a unit.
type attentionScratch struct {
	total, part partial
	q           []float32        // [query][dim]
	scores      []float32        // [query][splitTokens]
	weights     []float32        // [2][query]: of merge
	tile        []float32        // tiles of 2·16·dim halves, each of two blocks of 8
	joined      int              // 1 if tiles are made of two blocks, else 0
	table       []unsafe.Pointer // of the tiles of a part
	later       []unsafe.Pointer // of what is needed next
}

// gather copies the unit's queries, row by row and head by head.
func (j *attentionJob) gather(q []float32, u attentionUnit) {
	dim, first := j.kv.shape.HeadDim, j.seqs[u.seq].First+u.row
	width := j.perKey * dim
	for r := range u.rows {
		copy(q[r*width:][:width], j.q[(first+r)*j.stride+u.head*width:])
	}
}

// finish divides by the sums and writes the rows.
func (j *attentionJob) finish(total *partial, u attentionUnit) {
	dim, first := j.kv.shape.HeadDim, j.seqs[u.seq].First+u.row
	for i := range total.queries {
		out := j.dst.Row(first + i/j.perKey)[(u.head*j.perKey+i%j.perKey)*dim:][:dim]
		j.d.kernels.divide(out, total.acc[i*dim:][:dim], total.sum[i])
	}
}

// split computes one part of a unit's context.
func (j *attentionJob) split(chunk, s int, out partial, w *attentionScratch) {
	u := &j.units[chunk]
	seq, dim := &j.seqs[u.seq], j.kv.shape.HeadDim
	base := s * splitTokens
	begin := max(base, j.start(seq.Pos+u.row)) // of the first row, which begins first
	end := min(base+splitTokens, seq.Pos+u.row+u.rows)
	first := begin / lanes * lanes
	keys, values := j.tiles(seq, u.head, begin, end, w)
	keys.later, values.later = j.needed(chunk, s, w)
	j.d.kernels.gemmFloats(w.scores[first-base:], splitTokens, keys,
		floatRows{x: w.q, stride: dim, count: out.queries, k: dim})
	for i := range out.queries {
		pos := seq.Pos + u.row + i/j.perKey
		lo, hi := max(begin, j.start(pos)), min(end, pos+1)
		scores := w.scores[i*splitTokens:][:splitTokens]
		out.top[i], out.sum[i] = j.d.kernels.softmax(scores, lo-base, hi-base, j.o.Scale, j.o.Softcap)
	}
	j.d.kernels.gemmFloats(out.acc, dim, values,
		floatRows{x: w.scores[first-base:], stride: splitTokens, count: out.queries, k: end - first})
}

// tiles lists the tiles of positions begin to end-1, the first with what lies before begin in it: the keys as a panel each,
// since 16 positions are the lanes of the scores; the values as panels of 16 dimensions whose columns are the positions, a
// segment for each tile. Blocks that end before begin are not read: they may belong to others by now.
func (j *attentionJob) tiles(s *Seq, head, begin, end int, w *attentionScratch) (keys, values floatPanels) {
	first := begin / lanes * lanes
	dim, count := j.kv.shape.HeadDim, (end-first+lanes-1)/lanes
	chunks := dim / lanes
	keys = floatPanels{kind: kindF16, count: count, table: w.table[:count], segment: dim, stride: lanes}
	values = floatPanels{kind: kindF16, count: chunks, table: w.table[count:][:count*chunks], segment: lanes, stride: dim}
	for i := range count {
		k, v := j.tile(s, head, max(begin, first+i*lanes), w.tile[i*lanes*dim*w.joined:])
		keys.table[i] = unsafe.Pointer(&k[0])
		for c := range chunks {
			values.table[i*chunks+c] = unsafe.Pointer(&v[2*c*lanes])
		}
	}
	return keys, values
}

// needed lists what is needed next, for fetching: the tiles of the part of the context that follows split s of unit
// chunk, be it of the unit or of the one after it. Keys go through the tiles in order, each line of a tile beside a
// column; values, 16 columns a segment, through the second half of them, which keys of few queries do not reach.
func (j *attentionJob) needed(chunk, s int, w *attentionScratch) (keys, values []unsafe.Pointer) {
	u := &j.units[chunk]
	if s++; s > u.last {
		if chunk+1 == len(j.units) {
			return nil, nil
		}
		u = &j.units[chunk+1]
		s = u.first
	}
	seq, dim := &j.seqs[u.seq], j.kv.shape.HeadDim
	keys = w.later[:0]
	first := max(s*splitTokens, j.start(seq.Pos+u.row)) / lanes * lanes
	for pos := first; pos < min((s+1)*splitTokens, seq.Pos+u.row+u.rows); pos += lanes {
		k, _ := j.kv.tileAt(j.layer, u.head, seq.Blocks[pos/j.kv.shape.BlockSize], pos)
		keys = append(keys, unsafe.Pointer(&k[0]))
	}
	keys = keys[:len(keys)&^1]
	all := keys
	for _, tile := range keys[len(keys)/2:] {
		for line := 0; line < dim; line += lanes {
			all = append(all, unsafe.Add(tile, 64*line))
		}
	}
	return keys, all[len(keys):]
}

// tile returns keys, [dim][16], and values, [16][dim], of the 16 positions that pos is one of, those before pos only as far
// as they lie in its block. It needs memory of 16·dim floats if blocks have 8 tokens.
func (j *attentionJob) tile(s *Seq, head, pos int, memory []float32) (keys, values []byte) {
	kv := j.kv
	keys, values = kv.tileAt(j.layer, head, s.Blocks[pos/kv.shape.BlockSize], pos)
	if kv.tile < lanes {
		return j.joinTiles(keys, values, s, head, pos, memory[:lanes*kv.shape.HeadDim])
	}
	return keys, values
}

// joinTiles makes one tile of 16 of two blocks of 8: that of pos, whose keys and values are given, and the one behind it,
// unless that is in the next tile or the sequence does not have it.
func (j *attentionJob) joinTiles(k, v []byte, s *Seq, head, pos int, memory []float32) (keys, values []byte) {
	dim := j.kv.shape.HeadDim
	joined := bytesOf(memory)
	keys, values = joined[:2*lanes*dim], joined[2*lanes*dim:]
	clear(joined)
	const half = lanes / 2
	for i := pos % lanes / half; ; i++ {
		for n := range dim {
			copy(keys[2*(n*lanes+i*half):][:2*half], k[2*n*half:])
		}
		copy(values[2*i*half*dim:], v)
		next := pos/half + 1
		if i == 1 || next >= len(s.Blocks) {
			return keys, values
		}
		k, v = j.kv.tileAt(j.layer, head, s.Blocks[next], next*half)
	}
}

// softmaxRow turns the scores at lo ≤ i < hi into e^(score - greatest) and all others into 0; it returns the greatest
// score and the sum, in 16 lanes added by the tree. With no score in range it returns -∞ and 0.
func softmaxRow(scores []float32, lo, hi int, scale, limit float32) (top, sum float32) {
	top = float32(math.Inf(-1))
	for i := lo; i < hi; i++ {
		s := mul32(scores[i], scale)
		if limit != 0 {
			s = softcap(s, limit)
		}
		if s > top {
			top = s
		}
		scores[i] = s
	}
	var sums [lanes]float32
	for i := range scores {
		if i < lo || i >= hi {
			scores[i] = 0
			continue
		}
		scores[i] = exp32(sub32(scores[i], top))
		sums[i%lanes] = add32(sums[i%lanes], scores[i])
	}
	return top, sumTree(&sums)
}

// merge adds the next part of the context to total. A part without scores, whose greatest one is -∞, changes nothing.
func (j *attentionJob) merge(total, part *partial, w *attentionScratch) {
	a, b := w.weights[:total.queries], w.weights[total.queries:][:total.queries]
	j.d.kernels.mergeSums(a, b, total.top, total.sum, part.top, part.sum)
	for i := range a {
		j.d.kernels.mix(total.acc[i*total.dim:][:total.dim], part.acc[i*total.dim:], a[i], b[i])
	}
}

// mergeSumsRow merges greatest scores and sums of queries, and sets a and b to what the accumulators of both are
// multiplied with. Not both of a query's greatest scores may be -∞.
func mergeSumsRow(a, b, top, sum, partTop, partSum []float32) {
	for i := range a {
		greater := max(top[i], partTop[i])
		a[i], b[i] = exp32(sub32(top[i], greater)), exp32(sub32(partTop[i], greater))
		top[i], sum[i] = greater, fma32(partSum[i], b[i], mul32(sum[i], a[i]))
	}
}
