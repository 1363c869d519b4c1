package cpu

import "unsafe"

// blockCall is what the assembly of block products reads (gen/blocks512.go). All steps are in bytes.
type blockCall struct {
	dst         unsafe.Pointer // of the first row and panel
	stride      uintptr        // to the next row
	numbers     unsafe.Pointer
	scales      unsafe.Pointer
	numbersStep uintptr // from the end of a panel's numbers to those of the next
	scalesStep  uintptr
	panels      uintptr
	q           unsafe.Pointer // of the first row
	scale       unsafe.Pointer
	offset      unsafe.Pointer // what the unsigned weights have too much: minus8, minus32 or bias
	sum         unsafe.Pointer
	height      uintptr // rows of the tile
	rows        uintptr // rows to multiply
	blocks      uintptr
	ahead       uintptr // prefetch so far ahead, or 0
}

// floatCall is what the assembly of float products reads (gen/floats.go). All steps are in bytes.
type floatCall struct {
	dst       unsafe.Pointer
	dstStride uintptr // to the next row; the next panel's results follow at once
	weights   [4]unsafe.Pointer
	stride    uintptr // to the weights of the next column
	x         unsafe.Pointer
	xStride   uintptr
	k         uintptr
	rows      uintptr
	panels    uintptr
	add       uintptr // 1: begin with what is in dst
}

// quantizeCall is what the assembly of quantisation reads (gen/quantize.go).
type quantizeCall struct {
	x                                    unsafe.Pointer
	q, scale, sum, minus8, minus32, bias unsafe.Pointer
	blocks                               uintptr
	height                               uintptr // rows of the tile
}

// softmaxCall is what the assembly of softmax reads and writes (gen/softmax.go).
type softmaxCall struct {
	scores       unsafe.Pointer
	lo, hi       int
	scale, limit float32
	top          float32
	sums         [lanes]float32
}

// rowsOf returns the number of rows of the largest kernel that is not too high.
func rowsOf(heights []int, rows int) int {
	best := 1
	for _, h := range heights {
		if h <= rows {
			best = h
		}
	}
	return best
}

// whole is n without what is left over of 16.
func whole(n int) int { return n &^ (lanes - 1) }

// newQuantizeCall is the call for row r.
func newQuantizeCall(a *Acts, r int) quantizeCall {
	at := a.place(r, 0)
	return quantizeCall{
		x:       unsafe.Pointer(&a.F32[r*a.Cols]),
		q:       unsafe.Pointer(&a.q[at*blockCols]),
		scale:   unsafe.Pointer(&a.scale[at]),
		sum:     unsafe.Pointer(&a.sum[at]),
		minus8:  unsafe.Pointer(&a.minus8[at]),
		minus32: unsafe.Pointer(&a.minus32[2*at]),
		bias:    unsafe.Pointer(&a.bias[at]),
		blocks:  uintptr(a.Cols / blockCols),
		height:  uintptr(min(tileRows, a.rows-r/tileRows*tileRows)),
	}
}
