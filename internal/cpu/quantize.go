package cpu

import "math"

// Quantize makes the int8 form of x's rows, if it is not there yet. MatMul does it where the weights want it.
func (d *Device) Quantize(x *Acts) {
	if x.quantized || x.rows == 0 {
		return
	}
	tiles := (x.rows + tileRows - 1) / tileRows
	j := &d.quantize
	*j = quantizeJob{d: d, x: x, pieces: 1}
	if x.rows > 1 {
		j.pieces = max(1, min(x.blocks()/4, (2*d.Threads()+tiles-1)/tiles))
	}
	d.pool.do(tiles*j.pieces, j)
	x.quantized = true
}

// quantizeJob has chunks of whole tiles, or of columns of one: rows of a tile lie side by side in the planes, so that
// workers with rows of one tile each would take the same cache lines from one another.
type quantizeJob struct {
	d      *Device
	x      *Acts
	pieces int // of a tile
}

func (j *quantizeJob) run(_, chunk int) {
	tile, piece := chunk/j.pieces, chunk%j.pieces
	blocks := j.x.blocks()
	first, end := piece*blocks/j.pieces, (piece+1)*blocks/j.pieces
	for r := tile * tileRows; r < min((tile+1)*tileRows, j.x.rows); r++ {
		j.d.kernels.quantize(j.x, r, first, end)
	}
}

const (
	// amaxMin is the least greatest magnitude a block is quantised at; below, the block counts as zero, since 127/amax
	// might not be finite.
	amaxMin    = 0x1p-100
	bitsFinite = 0x7f800000 // the bits of infinity; greater magnitudes are NaN
)

// quantizeRow makes the int8 form of blocks first to end-1 of row r (docs/arithmetic.md §4). A last block that is not
// whole counts as filled up with zeros.
func quantizeRow(a *Acts, r, first, end int) {
	row := a.Row(r)
	for b := first; b < end; b++ {
		at := a.place(r, b)
		q := a.q[at*blockCols:][:blockCols]
		scale := quantizeBlock(q, row[b*blockCols:min((b+1)*blockCols, len(row))])
		var half [2]int32
		for i, v := range q {
			half[i/16] += int32(v)
		}
		sum := half[0] + half[1]
		a.scale[at] = scale
		a.sum[at] = mul32(scale, float32(sum))
		a.minus8[at], a.minus16[at] = -8*sum, -16*sum
		a.bias[at] = -128 * sum
		a.minus32[2*at], a.minus32[2*at+1] = -32*half[0], -32*half[1]
	}
}

// quantizeBlock sets q to x divided by the returned scale, which is the greatest magnitude / 127. A block that holds
// infinity or NaN gets the scale NaN, so that whatever is computed from it is NaN.
func quantizeBlock(q []int8, x []float32) float32 {
	var top uint32 // the bits of magnitudes are ordered as the magnitudes are
	for _, v := range x {
		top = max(top, math.Float32bits(v)&0x7fffffff)
	}
	clear(q)
	amax := math.Float32frombits(top)
	switch {
	case top >= bitsFinite:
		return float32(math.NaN())
	case amax < amaxMin:
		return 0
	}
	inverse := 127 / amax
	for i, v := range x {
		q[i] = int8(math.RoundToEven(float64(mul32(v, inverse))))
	}
	return amax / 127
}
