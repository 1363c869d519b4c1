package cpu

import (
	"encoding/binary"
	"math"

	"github.com/quire-ai/quire/internal/tensor"
)

// tile is a tile of activations: height rows, of which a kernel call multiplies some.
type tile struct {
	acts   *Acts
	row    int // first row of the tile, a multiple of tileRows
	height int
}

// gemmBlocks multiplies panels of a block format with a tile (docs/arithmetic.md §5): dst[r·stride + 16·panel + lane],
// for the rows of the tile, is the sum over the blocks in order of
//
//	acc = fma32(float32(dot), scale of weights · scale of activations, acc)
//	acc = fma32(min, sum of activations, acc)      in formats with a minimum
//
// where dot is the integer product of 32 weights and 32 activations.
func gemmBlocks(dst []float32, stride int, p panels, x tile, cols int) {
	for i := range p.count {
		gemmPanel(dst[i*lanes:], stride, panel{p.layout, p.numbers(i), p.scales(i)}, x, cols)
	}
}

// panel is one panel of a run.
type panel struct {
	layout          layout
	numbers, scales []byte
}

func gemmPanel(dst []float32, stride int, p panel, x tile, cols int) {
	var w [lanes][blockCols]int32
	var acc [tileRows][lanes]float32
	for b := range cols / blockCols {
		unpackWeights(&w, p, b)
		scale, minimum := blockScales(p, b)
		for r := range x.height {
			at := x.acts.place(x.row+r, b)
			q := (*[blockCols]int8)(x.acts.q[at*blockCols:])
			as, sum := x.acts.scale[at], x.acts.sum[at]
			for lane := range acc[r] {
				dot := blockDot(p, b, lane, &w[lane], q)
				a := fma32(float32(dot), mul32(scale[lane], as), acc[r][lane])
				if p.layout.hasMin() {
					a = fma32(minimum[lane], sum, a)
				}
				acc[r][lane] = a
			}
		}
	}
	for r := range x.height {
		copy(dst[r*stride:][:lanes], acc[r][:])
	}
}

func (l layout) hasMin() bool { return l.kind >= kindQ8Min && l.kind <= kindQ4K }

// unpackWeights sets w to block b of the panel as signed integers.
func unpackWeights(w *[lanes][blockCols]int32, p panel, b int) {
	numbers := p.numbers[b*p.layout.blockBytes:][:p.layout.blockBytes]
	offset := [kindCount]int32{kindQ8: 128, kindQ4: 8, kindQ6K: 32}[p.layout.kind]
	for lane := range w {
		for k := range w[lane] {
			g, j := k/4, k%4
			if p.layout.blockBytes == 512 {
				w[lane][k] = int32(numbers[g*64+lane*4+j]) - offset
			} else {
				w[lane][k] = int32(numbers[g%4*64+lane*4+j]>>(g/4*4)&15) - offset
			}
		}
	}
}

// blockScales returns the scale and the minimum of block b of each row; products with the scales of the k-quants are
// exact.
func blockScales(p panel, b int) (scale, minimum [lanes]float32) {
	record := p.scales[b/p.layout.scaleBlocks*p.layout.scaleBytes:][:p.layout.scaleBytes]
	half := func(at, lane int) float32 {
		return tensor.F16ToF32(binary.LittleEndian.Uint16(record[at+2*lane:]))
	}
	for lane := range lanes {
		scale[lane] = half(0, lane)
		switch p.layout.kind {
		case kindQ8Min, kindQ4Min:
			minimum[lane] = half(32, lane)
		case kindQ8K, kindQ4K:
			pair := record[64+b%8*32:]
			scale[lane] *= float32(pair[lane])
			minimum[lane] = -half(32, lane) * float32(pair[16+lane])
		}
	}
	return scale, minimum
}

// blockDot is the integer product of a block. In Q6_K, whose halves have scales of their own, it is their sum weighted
// with these: less than 2^24, so that float32 holds it exactly.
func blockDot(p panel, b, lane int, w *[blockCols]int32, q *[blockCols]int8) int32 {
	var half [2]int32
	for k, v := range q {
		half[k/16] += w[k] * int32(v)
	}
	if p.layout.kind != kindQ6K {
		return half[0] + half[1]
	}
	scales := p.scales[b/8*p.layout.scaleBytes+32+b%8*32:]
	return half[0]*int32(int8(scales[lane])) + half[1]*int32(int8(scales[16+lane]))
}

// floatPanels are up to four panels of float numbers: element k of a lane lies at k·stride + lane.
type floatPanels struct {
	kind   kind
	count  int
	data   [4][]byte
	stride int // elements
}

// at returns element k of a lane of panel i.
func (w *floatPanels) at(i, k, lane int) float32 {
	at := k*w.stride + lane
	switch w.kind {
	case kindF16:
		return tensor.F16ToF32(binary.LittleEndian.Uint16(w.data[i][2*at:]))
	case kindBF16:
		return tensor.BF16ToF32(binary.LittleEndian.Uint16(w.data[i][2*at:]))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(w.data[i][4*at:]))
}

// floatRows are rows of float activations: element k of row r lies at r·stride + k.
type floatRows struct {
	x      []float32
	stride int
	count  int
	k      int // elements to multiply
}

// gemmFloats multiplies panels of float weights with rows (docs/arithmetic.md §6): dst[r·stride + 16·panel + lane] is
// one chain acc = fma32(x[r][k], w[k][lane], acc) over k in order, from what is in dst if add, else from zero.
func gemmFloats(dst []float32, stride int, w floatPanels, x floatRows, add bool) {
	for i := range w.count {
		for r := range x.count {
			var acc [lanes]float32
			out := dst[r*stride+i*lanes:][:lanes]
			if add {
				copy(acc[:], out)
			}
			for k, v := range x.x[r*x.stride:][:x.k] {
				for lane := range acc {
					acc[lane] = fma32(v, w.at(i, k, lane), acc[lane])
				}
			}
			copy(out, acc[:])
		}
	}
}
