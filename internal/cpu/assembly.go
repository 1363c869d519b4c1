package cpu

import "unsafe"

// assembly makes kernels of a level's assembly: it fills the structs that the products read, splits rows into the
// heights there are, and leaves what is not a whole vector to plain Go. The functions are written by gen. Elementwise
// ones take n values, a multiple of 16.
type assembly struct {
	blocks [kindCount]func(*blockCall)
	floats [kindCount]func(*floatCall)

	// amx are products with tiles of amxFrom to 16 rows, which are better than those of blocks.
	amx     [kindCount]func(*blockCall)
	amxFrom [kindCount]int

	// blockHeights and floatHeights are the numbers of rows there are products for, ascending from 1.
	blockHeights [kindCount][]int
	floatHeights []int
	// together is how many panels, besides one, the float product of so many rows takes at once.
	together func(rows int) int

	unpackCall   [kindCount]func(*unpackCall) // of kinds that are worth it,
	unpackFrom   int                          // from so many rows
	quantizeCall func(*quantizeCall)
	softmaxCall  func(*softmaxCall)
	greatestCall func(top, x *float32, n int)
	weightsCall  func(dst *float32, sums *[lanes]float32, x *float32, n int, top, inverse, least float32)
	sumSquares   func(sums *[lanes]float32, x *float32, n int)
	weigh        func(dst, x, weight *float32, n int, factor float32)
	siluCall     func(dst, gate, up *float32, n int)
	geluCall     func(dst, gate, up *float32, n int)
	rotatePairs  func(x, cos, sin *float32, n int)
	rotateHalves func(low, high, cos, sin *float32, n int)
	addCall      func(dst, x *float32, n int)
	scaleCall    func(x *float32, n int, factor float32)
	softcapCall  func(x *float32, n int, limit float32)
	halvesCall   func(dst *uint16, x *float32, n int)
	mergeCall    func(a, b, top, sum, partTop, partSum *float32, n int)
	mixCall      func(dst, x *float32, n int, a, b float32)
	divideCall   func(dst, x *float32, n int, divisor float32)

	peakInts, peakFloats func(n int)
	peakRead             func(p *byte, n int)
	peakLanes            int     // float32 of a vector
	peakBytes            float64 // bytes that peakInts multiplies in such a lane with one operation
}

// hide returns p in a way that does not make what it points to escape to the heap, as strings.Builder hides itself.
// Assembly keeps no pointer and no stack moves while it runs, but the compiler cannot know that of a function value. Nor may
// one move while x is a number: the race detector's check of pointers, a call that may, is left out.
//
//go:nocheckptr
func hide[T any](p *T) *T {
	x := uintptr(unsafe.Pointer(p))
	return *(**T)(unsafe.Pointer(&x))
}

// aheadBytes is how far ahead of its use a weight is fetched into the second level's cache when it is used but once.
const aheadBytes = 12288

func (a *assembly) gemmBlocks(dst []float32, stride int, p panels, x tiles, cols int) {
	numbersBytes, scalesBytes := p.layout.numbersBytes(cols), p.layout.scalesBytes(cols)
	c := blockCall{
		stride:      uintptr(4 * stride),
		dstTile:     uintptr(4 * stride * tileRows),
		numbersGap:  uintptr(p.numbersStep - numbersBytes),
		numbersBack: uintptr(numbersBytes),
		scalesGap:   uintptr(p.scalesStep - scalesBytes),
		scalesBack:  uintptr(scalesBytes),
		panels:      uintptr(p.count),
		blocks:      uintptr(cols / blockCols),
	}
	if x.rows <= tileRows {
		if !p.near {
			c.ahead = aheadBytes
		}
		a.gemmTiles(&c, dst, p, x)
		return
	}
	whole := x.part(0, x.rows/tileRows*tileRows)
	rest := x.part(whole.rows, x.rows-whole.rows)
	if rest.rows > 0 && a.amx[p.layout.kind] == nil {
		c.panels = 1
		for i := range p.count {
			a.gemmPanel(&c, dst[i*lanes:], p.part(i, 1), whole, rest)
		}
		return
	}
	// With AMX a call costs as much as a panel of few columns, so the rest comes after all panels.
	if !p.near {
		c.ahead = uintptr(p.numbersStep)
	}
	if whole.rows > tileRows {
		c.halved = 1
	}
	a.gemmTiles(&c, dst, p, whole)
	if rest.rows > 0 {
		c.ahead = 0
		a.gemmTiles(&c, dst[whole.rows*stride:], p, rest)
	}
}

// gemmPanel multiplies a panel with all tiles while the next one is fetched into the second level's cache, half of it
// beside each of the first two tiles.
func (a *assembly) gemmPanel(c *blockCall, dst []float32, p panels, whole, rest tiles) {
	c.halved, c.ahead = 1, 0
	if !p.near {
		c.ahead = uintptr(p.numbersStep)
	}
	a.gemmTiles(c, dst, p, whole)
	c.ahead += c.ahead / 2
	if whole.rows > tileRows {
		c.ahead = 0
	}
	a.gemmTiles(c, dst[whole.rows*int(c.stride)/4:], p, rest)
}

// gemmTiles multiplies panels with whole tiles, or with one that is not; c says how the panels lie.
func (a *assembly) gemmTiles(c *blockCall, dst []float32, p panels, x tiles) {
	c.numbers, c.scales = unsafe.Pointer(&p.numbers[0]), unsafe.Pointer(&p.scales[0])
	k, stride := p.layout.kind, int(c.stride)/4
	height := min(x.rows, tileRows)
	c.height = uintptr(height)
	for r := 0; r < x.rows; r += int(c.rows * c.tiles) {
		multiply, rest := a.blocks[k], height-r%tileRows
		c.rows, c.tiles = uintptr(rowsOf(a.blockHeights[k], rest)), 1
		if a.amx[k] != nil && rest >= a.amxFrom[k] {
			multiply, c.rows = a.amx[k], uintptr(rest)
		}
		if c.rows == tileRows {
			c.tiles = uintptr(x.rows / tileRows)
		}
		c.left = c.tiles
		at := x.acts.place(x.row+r, 0)
		c.dst = unsafe.Pointer(&dst[r*stride])
		c.q = unsafe.Pointer(&x.acts.q[at*blockCols])
		c.scale = unsafe.Pointer(&x.acts.scale[at])
		c.sum = unsafe.Pointer(&x.acts.sum[at])
		switch p.layout.offset {
		case 8:
			c.offset = unsafe.Pointer(&x.acts.minus8[at])
		case 16:
			c.offset = unsafe.Pointer(&x.acts.minus16[at])
		case 32:
			c.offset = unsafe.Pointer(&x.acts.minus32[2*at])
		case 128:
			c.offset = unsafe.Pointer(&x.acts.bias[at])
		}
		multiply(hide(c))
	}
}

func (a *assembly) gemmFloats(dst []float32, stride int, w floatPanels, x floatRows) {
	c := floatCall{
		dstStride: uintptr(4 * stride),
		tableStep: uintptr(8 * w.count),
		segment:   uintptr(w.segment),
		stride:    uintptr(2 * w.stride),
		xStride:   uintptr(4 * x.stride),
	}
	if w.kind == kindF32 {
		c.stride *= 2
	}
	if w.fresh {
		c.ahead = aheadBytes
	}
	later, segments := w.later, 2*((x.k+w.segment-1)/w.segment)
	for r := 0; r < x.count; r += int(c.rows) {
		if r > 0 {
			c.ahead, later = 0, nil
		}
		c.rows = uintptr(rowsOf(a.floatHeights, x.count-r))
		c.x = unsafe.Pointer(&x.x[r*x.stride])
		together := a.together(int(c.rows))
		for i := 0; i < w.count; i += int(c.panels) {
			c.panels = 1
			if together <= w.count-i {
				c.panels = uintptr(together)
			}
			c.fetch = nil
			if len(later) >= segments {
				c.fetch, later = unsafe.Pointer(&later[0]), later[segments:]
			}
			c.dst = unsafe.Pointer(&dst[r*stride+i*lanes])
			c.table, c.k = unsafe.Pointer(&w.table[i]), uintptr(x.k)
			a.floats[w.kind](hide(&c))
		}
	}
}

func (a *assembly) unpack(dst []byte, l layout, numbers []byte, cols int) {
	c := unpackCall{unsafe.Pointer(&dst[0]), unsafe.Pointer(&numbers[0]), uintptr(cols / blockCols)}
	a.unpackCall[l.kind](hide(&c))
}

func (a *assembly) unpacks(k kind, rows int) bool {
	return a.unpackCall[k] != nil && rows >= a.unpackFrom
}

func (a *assembly) quantize(x *Acts, r, first, end int) {
	if x.Cols%blockCols != 0 {
		quantizeRow(x, r, first, end)
		return
	}
	at := x.place(r, first)
	c := quantizeCall{
		x:       unsafe.Pointer(&x.F32[r*x.Cols+first*blockCols]),
		q:       unsafe.Pointer(&x.q[at*blockCols]),
		scale:   unsafe.Pointer(&x.scale[at]),
		sum:     unsafe.Pointer(&x.sum[at]),
		minus8:  unsafe.Pointer(&x.minus8[at]),
		minus16: unsafe.Pointer(&x.minus16[at]),
		minus32: unsafe.Pointer(&x.minus32[2*at]),
		bias:    unsafe.Pointer(&x.bias[at]),
		blocks:  uintptr(end - first),
		height:  uintptr(min(tileRows, x.rows-r/tileRows*tileRows)),
	}
	a.quantizeCall(hide(&c))
}

func (a *assembly) softmax(scores []float32, lo, hi int, scale, limit float32) (top, sum float32) {
	if lo >= hi {
		return softmaxRow(scores, lo, hi, scale, limit)
	}
	c := softmaxCall{scores: unsafe.Pointer(&scores[0]), lo: lo, hi: hi, scale: scale, limit: limit}
	a.softmaxCall(hide(&c))
	return c.top, sumTree(&c.sums)
}

func (a *assembly) greatest(x []float32) float32 {
	n := whole(len(x))
	if n == 0 {
		return greatest(x)
	}
	var top float32
	a.greatestCall(hide(&top), &x[0], n)
	if rest := x[n:]; len(rest) > 0 {
		return max(top, greatest(rest)) // NaN if one of them is
	}
	return top
}

func (a *assembly) weights(dst, x []float32, w Weighing) float32 {
	var sums [lanes]float32
	n := whole(len(x))
	if n > 0 {
		a.weightsCall(&dst[0], hide(&sums), &x[0], n, w.Top, w.Inverse, w.Least)
	}
	weigh16(&sums, dst[n:], x[n:], w)
	return sumTree(&sums)
}

func (a *assembly) norm(dst, x, weight []float32, eps float32) {
	var sums [lanes]float32
	n := whole(len(x))
	if n > 0 {
		a.sumSquares(hide(&sums), &x[0], n)
	}
	inverse := normInverse(&sums, x[n:], len(x), eps)
	if n > 0 {
		a.weigh(&dst[0], &x[0], &weight[0], n, inverse)
	}
	weighRow(dst[n:], x[n:], weight[n:], inverse)
}

func (a *assembly) rotate(head, cos, sin []float32, interleaved bool) {
	half := len(cos) / 2
	switch {
	case interleaved && len(cos)%lanes == 0:
		a.rotatePairs(&head[0], &cos[0], &sin[0], len(cos))
	case !interleaved && half%lanes == 0:
		a.rotateHalves(&head[0], &head[half], &cos[half], &sin[half], half)
	default:
		rotateHead(head, cos, sin, interleaved)
	}
}

func (a *assembly) silu(dst, gate, up []float32) {
	n := whole(len(gate))
	if n > 0 {
		a.siluCall(&dst[0], &gate[0], &up[0], n)
	}
	siluRow(dst[n:], gate[n:], up[n:])
}

func (a *assembly) gelu(dst, gate, up []float32) {
	n := whole(len(gate))
	if n > 0 {
		a.geluCall(&dst[0], &gate[0], &up[0], n)
	}
	geluRow(dst[n:], gate[n:], up[n:])
}

func (a *assembly) add(dst, x []float32) {
	n := whole(len(x))
	if n > 0 {
		a.addCall(&dst[0], &x[0], n)
	}
	addRow(dst[n:], x[n:])
}

func (a *assembly) scale(x []float32, factor float32) {
	n := whole(len(x))
	if n > 0 {
		a.scaleCall(&x[0], n, factor)
	}
	scaleRow(x[n:], factor)
}

func (a *assembly) softcap(x []float32, limit float32) {
	n := whole(len(x))
	if n > 0 {
		a.softcapCall(&x[0], n, limit)
	}
	softcapRow(x[n:], limit)
}

func (a *assembly) halves(dst []uint16, x []float32) {
	n := whole(len(x))
	if n > 0 {
		a.halvesCall(&dst[0], &x[0], n)
	}
	halvesRow(dst[n:], x[n:])
}

func (a *assembly) mergeSums(p, q, top, sum, partTop, partSum []float32) {
	n := whole(len(p))
	if n > 0 {
		a.mergeCall(&p[0], &q[0], &top[0], &sum[0], &partTop[0], &partSum[0], n)
	}
	mergeSumsRow(p[n:], q[n:], top[n:], sum[n:], partTop[n:], partSum[n:])
}

func (a *assembly) mix(dst, x []float32, p, q float32) {
	n := whole(len(dst))
	if n > 0 {
		a.mixCall(&dst[0], &x[0], n, p, q)
	}
	mixRow(dst[n:], x[n:], p, q)
}

func (a *assembly) divide(dst, x []float32, divisor float32) {
	n := whole(len(x))
	if n > 0 {
		a.divideCall(&dst[0], &x[0], n, divisor)
	}
	divideRow(dst[n:], x[n:], divisor)
}

// whole is n without what is left over of 16.
func whole(n int) int { return n &^ (lanes - 1) }

// rowsOf returns the greatest of heights that is not above rows.
func rowsOf(heights []int, rows int) int {
	best := heights[0]
	for _, h := range heights {
		if h <= rows {
			best = h
		}
	}
	return best
}

// sameHeights gives every kind the same heights.
func sameHeights(heights []int) (all [kindCount][]int) {
	for k := range all {
		all[k] = heights
	}
	return all
}
