package cpu

import (
	"encoding/binary"
	"unsafe"

	"github.com/quire-ai/quire/internal/tensor"
)

// tiles are rows of activations for a product: whole tiles and, at the end of the activations, one that may be lower.
type tiles struct {
	acts *Acts
	row  int // the first, a multiple of tileRows
	rows int
}

// part returns rows from first, a multiple of tileRows.
func (t tiles) part(first, rows int) tiles { return tiles{t.acts, t.row + first, rows} }

// gemmBlocks multiplies panels of a block format with tiles (docs/arithmetic.md §5): dst[r·stride + 16·panel + lane],
// for the rows of the tiles, is the sum over the blocks in order of
//
//	acc = fma32(float32(dot), scale of weights · scale of activations, acc)
//	acc = fma32(min, sum of activations, acc)      in formats with a minimum
//
// where dot is the integer product of 32 weights and 32 activations.
func gemmBlocks(dst []float32, stride int, p panels, x tiles, cols int) {
	for i := range p.count {
		for r := 0; r < x.rows; r += tileRows {
			gemmPanel(dst[r*stride+i*lanes:], stride, p.part(i, 1), x.part(r, min(tileRows, x.rows-r)), cols)
		}
	}
}

func gemmPanel(dst []float32, stride int, p panels, x tiles, cols int) {
	var w [lanes][blockCols]int32
	var acc [tileRows][lanes]float32
	for b := range cols / blockCols {
		unpackWeights(&w, p, b)
		scale, minimum := blockScales(p, b)
		for r := range x.rows {
			at := x.acts.place(x.row+r, b)
			q := (*[blockCols]int8)(x.acts.q[at*blockCols:])
			as, sum := x.acts.scale[at], x.acts.sum[at]
			for lane := range acc[r] {
				dot := blockDot(p, b, lane, &w[lane], q)
				a := fma32(float32(dot), mul32(scale[lane], as), acc[r][lane])
				if p.layout.kind.hasMin() {
					a = fma32(minimum[lane], sum, a)
				}
				acc[r][lane] = a
			}
		}
	}
	for r := range x.rows {
		copy(dst[r*stride:][:lanes], acc[r][:])
	}
}

// unpackWeights sets w to block b of the panel as signed integers.
func unpackWeights(w *[lanes][blockCols]int32, p panels, b int) {
	numbers := p.numbers[b*p.layout.blockBytes:][:p.layout.blockBytes]
	for lane := range w {
		for k := range w[lane] {
			w[lane][k] = int32(p.layout.number(numbers, lane, k)) - int32(p.layout.offset)
		}
	}
}

// number returns the number of a lane and column of a block.
func (l layout) number(block []byte, lane, column int) uint8 {
	g, at := column/4, lane*4+column%4
	if l.bits == 8 {
		return block[g*64+at]
	}
	n := block[g%4*64+at] >> (g / 4 * 4) & 15
	if bits := l.bits - 4; bits > 0 {
		perByte := 8 / bits
		high := block[256+g/perByte*64+at] >> (g % perByte * bits) & (1<<bits - 1)
		n |= high << 4
	}
	if l.codes != nil {
		return l.codes[n]
	}
	return n
}

// unpackNumbers sets dst to the numbers of a panel in the unpacked layout.
func unpackNumbers(dst []byte, l layout, numbers []byte, cols int) {
	for b := range cols / blockCols {
		block := numbers[b*l.blockBytes:][:l.blockBytes]
		for column := range blockCols {
			for lane := range lanes {
				dst[b*512+column/4*64+lane*4+column%4] = l.number(block, lane, column)
			}
		}
	}
}

// blockScales returns the scale and the minimum of block b of each row; products with the scales of the k-quants are
// exact.
func blockScales(p panels, b int) (scale, minimum [lanes]float32) {
	record := p.scales[b/p.layout.scaleBlocks*p.layout.scaleBytes:][:p.layout.scaleBytes]
	half := func(at, lane int) float32 {
		return tensor.F16ToF32(binary.LittleEndian.Uint16(record[at+2*lane:]))
	}
	for lane := range lanes {
		scale[lane] = half(0, lane)
		switch p.layout.kind {
		case kindM4:
			scale[lane] = tensor.BF16ToF32(binary.LittleEndian.Uint16(record[2*lane:]))
		case kindQ8Min, kindQ4Min, kindQ5Min:
			minimum[lane] = half(32, lane)
		case kindQ8K, kindQ4K, kindQ5K:
			pair := record[64+b%8*32:]
			scale[lane] *= float32(pair[lane])
			minimum[lane] = -half(32, lane) * float32(pair[16+lane])
		}
	}
	return scale, minimum
}

// blockDot is the integer product of a block. In Q6_K, whose halves have scales of their own, it is their sum weighted
// with these: less than 2^24, so that float32 holds it exactly.
func blockDot(p panels, b, lane int, w *[blockCols]int32, q *[blockCols]int8) int32 {
	var half [2]int32
	for k, v := range q {
		half[k/16] += w[k] * int32(v)
	}
	if !p.layout.kind.hasHalves() {
		return half[0] + half[1]
	}
	scales := p.scales[b/8*p.layout.scaleBytes+32+b%8*32:]
	return half[0]*int32(int8(scales[lane])) + half[1]*int32(int8(scales[16+lane]))
}

// floatPanels are panels of float numbers: element k of a lane of panel i lies k%segment·stride + lane numbers from
// table[k/segment·count + i]. The memory is a Matrix's or a KV's, outside the Go heap.
type floatPanels struct {
	kind    kind
	count   int
	table   []unsafe.Pointer // [segment][panel]
	segment int              // elements of a segment; the last one may be shorter
	stride  int              // numbers from one element to the next
	fresh   bool             // used for the first time: what follows is not in the cache yet
	// later are pairs of places that are needed soon and fetched meanwhile: a pair for each segment of each run of panels,
	// as far as they reach, and of each place a line for each column.
	later []unsafe.Pointer
}

// at returns element k of a lane of panel i.
func (w *floatPanels) at(i, k, lane int) float32 {
	p := w.table[k/w.segment*w.count+i]
	at := k%w.segment*w.stride + lane
	switch w.kind {
	case kindF16:
		return tensor.F16ToF32(*(*uint16)(unsafe.Add(p, 2*at)))
	case kindBF16:
		return tensor.BF16ToF32(*(*uint16)(unsafe.Add(p, 2*at)))
	}
	return *(*float32)(unsafe.Add(p, 4*at))
}

// floatRows are rows of float activations: element k of row r lies at r·stride + k.
type floatRows struct {
	x      []float32
	stride int
	count  int
	k      int // elements to multiply
}

// gemmFloats multiplies panels of float weights with rows (docs/arithmetic.md §6): dst[r·stride + 16·panel + lane] is
// one chain acc = fma32(x[r][k], w[k][lane], acc) over k in order.
func gemmFloats(dst []float32, stride int, w floatPanels, x floatRows) {
	for i := range w.count {
		for r := range x.count {
			var acc [lanes]float32
			for k, v := range x.x[r*x.stride:][:x.k] {
				for lane := range acc {
					acc[lane] = fma32(v, w.at(i, k, lane), acc[lane])
				}
			}
			copy(dst[r*stride+i*lanes:][:lanes], acc[:])
		}
	}
}
