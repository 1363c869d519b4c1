package cpu

import "unsafe"

// avx512Kernels are the assembly of level AVX512VNNI, with plain Go for what is left over of whole vectors.
func avx512Kernels() kernels {
	return kernels{
		gemmBlocks: gemmBlocksAVX512,
		gemmFloats: gemmFloatsAVX512,
		quantize:   quantizeRowAVX512,
		norm:       normRowAVX512,
		silu: func(dst, gate, up []float32) {
			if n := whole(len(gate)); n > 0 {
				siluAVX512(&dst[0], &gate[0], &up[0], n)
				dst, gate, up = dst[n:], gate[n:], up[n:]
			}
			siluRow(dst, gate, up)
		},
		gelu: func(dst, gate, up []float32) {
			if n := whole(len(gate)); n > 0 {
				geluAVX512(&dst[0], &gate[0], &up[0], n)
				dst, gate, up = dst[n:], gate[n:], up[n:]
			}
			geluRow(dst, gate, up)
		},
		rotate: rotateHeadAVX512,
		add: func(dst, x []float32) {
			if n := whole(len(x)); n > 0 {
				addAVX512(&dst[0], &x[0], n)
				dst, x = dst[n:], x[n:]
			}
			addRow(dst, x)
		},
		scale: func(x []float32, factor float32) {
			if n := whole(len(x)); n > 0 {
				scaleAVX512(&x[0], n, factor)
				x = x[n:]
			}
			scaleRow(x, factor)
		},
		softcap: func(x []float32, limit float32) {
			if n := whole(len(x)); n > 0 {
				softcapAVX512(&x[0], n, limit)
				x = x[n:]
			}
			softcapRow(x, limit)
		},
		halves: func(dst []uint16, x []float32) {
			if n := whole(len(x)); n > 0 {
				halvesAVX512(&dst[0], &x[0], n)
				dst, x = dst[n:], x[n:]
			}
			halvesRow(dst, x)
		},
		softmax: softmaxRowAVX512,
		mix: func(dst, x []float32, a, b float32) {
			if n := whole(len(x)); n > 0 {
				mixAVX512(&dst[0], &x[0], n, a, b)
				dst, x = dst[n:], x[n:]
			}
			mixRow(dst, x, a, b)
		},
		divide: func(dst, x []float32, divisor float32) {
			if n := whole(len(x)); n > 0 {
				divideAVX512(&dst[0], &x[0], n, divisor)
				dst, x = dst[n:], x[n:]
			}
			divideRow(dst, x, divisor)
		},
	}
}

// heightsAVX512 are the numbers of rows that the products are made for (gen/blocks512.go).
var heightsAVX512 = [...]int{1, 2, 3, 4, 6, 8, 12, 16}

// aheadBytes is how far ahead of its use a weight is fetched into the second level's cache when it is used but once.
const aheadBytes = 8192

// gemmBlocksAVX512 is gemmBlocks.
func gemmBlocksAVX512(dst []float32, stride int, p panels, x tile, cols int) {
	at := x.acts.place(x.row, 0)
	blocks := cols / blockCols
	scaleBytes := blocks / p.layout.scaleBlocks * p.layout.scaleBytes
	c := blockCall{
		stride:      uintptr(4 * stride),
		numbersStep: uintptr(p.panelBytes - p.split),
		scalesStep:  uintptr(p.panelBytes - scaleBytes),
		numbers:     unsafe.Pointer(&p.data[0]),
		scales:      unsafe.Pointer(&p.data[p.split]),
		panels:      uintptr(p.count),
		height:      uintptr(x.height),
		blocks:      uintptr(blocks),
	}
	if x.row+x.height == x.acts.rows {
		c.ahead = aheadBytes // the last tile: what follows is not in the cache yet
	}
	for r := 0; r < x.height; r += int(c.rows) {
		c.rows = uintptr(rowsOf(heightsAVX512[:], x.height-r))
		c.dst = unsafe.Pointer(&dst[r*stride])
		c.q = unsafe.Pointer(&x.acts.q[(at+r)*blockCols])
		c.scale = unsafe.Pointer(&x.acts.scale[at+r])
		c.sum = unsafe.Pointer(&x.acts.sum[at+r])
		switch p.layout.kind {
		case kindQ8:
			c.offset = unsafe.Pointer(&x.acts.bias[at+r])
			blocksQ8AVX512(&c)
		case kindQ4:
			c.offset = unsafe.Pointer(&x.acts.minus8[at+r])
			blocksQ4AVX512(&c)
		case kindQ8Min:
			blocksQ8MinAVX512(&c)
		case kindQ4Min:
			blocksQ4MinAVX512(&c)
		case kindQ8K:
			blocksQ8KAVX512(&c)
		case kindQ4K:
			blocksQ4KAVX512(&c)
		case kindQ6K:
			c.offset = unsafe.Pointer(&x.acts.minus32[2*(at+r)])
			blocksQ6KAVX512(&c)
		}
	}
}

// gemmFloatsAVX512 is gemmFloats. Kernels of up to four rows multiply four panels at once, of six rows two.
func gemmFloatsAVX512(dst []float32, stride int, w floatPanels, x floatRows, add bool) {
	c := floatCall{dstStride: uintptr(4 * stride), stride: uintptr(2 * w.stride), xStride: uintptr(4 * x.stride), k: uintptr(x.k)}
	if w.kind == kindF32 {
		c.stride *= 2
	}
	if add {
		c.add = 1
	}
	for r := 0; r < x.count; r += int(c.rows) {
		c.rows = uintptr(rowsOf(heightsAVX512[:], x.count-r))
		c.x = unsafe.Pointer(&x.x[r*x.stride])
		together := 1
		switch {
		case c.rows <= 4 && w.count == 4:
			together = 4
		case c.rows == 6 && w.count%2 == 0:
			together = 2
		}
		c.panels = uintptr(together)
		for i := 0; i < w.count; i += together {
			c.dst = unsafe.Pointer(&dst[r*stride+i*lanes])
			for n := range together {
				c.weights[n] = unsafe.Pointer(&w.data[i+n][0])
			}
			switch w.kind {
			case kindF32:
				floatsF32AVX512(&c)
			case kindF16:
				floatsF16AVX512(&c)
			case kindBF16:
				floatsBF16AVX512(&c)
			}
		}
	}
}

// quantizeRowAVX512 is quantizeRow.
func quantizeRowAVX512(a *Acts, r int) {
	if a.Cols%blockCols != 0 {
		quantizeRow(a, r)
		return
	}
	c := newQuantizeCall(a, r)
	quantizeAVX512(&c)
}

// normRowAVX512 is normRow.
func normRowAVX512(dst, x, weight []float32, eps float32) {
	var sums [lanes]float32
	n := whole(len(x))
	if n > 0 {
		sumSquaresAVX512(&sums, &x[0], n)
	}
	inverse := normInverse(&sums, x[n:], len(x), eps)
	if n > 0 {
		weighAVX512(&dst[0], &x[0], &weight[0], n, inverse)
	}
	weighRow(dst[n:], x[n:], weight[n:], inverse)
}

// rotateHeadAVX512 is rotateHead.
func rotateHeadAVX512(head, cos, sin []float32, interleaved bool) {
	half := len(cos) / 2
	switch {
	case interleaved && len(cos)%lanes == 0:
		rotatePairsAVX512(&head[0], &cos[0], &sin[0], len(cos))
	case !interleaved && half%lanes == 0:
		rotateHalvesAVX512(&head[0], &head[half], &cos[half], &sin[half], half)
	default:
		rotateHead(head, cos, sin, interleaved)
	}
}

// softmaxRowAVX512 is softmaxRow.
func softmaxRowAVX512(scores []float32, lo, hi int, scale, limit float32) (top, sum float32) {
	if lo >= hi {
		return softmaxRow(scores, lo, hi, scale, limit)
	}
	c := softmaxCall{scores: unsafe.Pointer(&scores[0]), lo: lo, hi: hi, scale: scale, limit: limit}
	softmaxAVX512(&c)
	return c.top, sumTree(&c.sums)
}
