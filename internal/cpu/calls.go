package cpu

import "unsafe"

// blockCall is what the assembly of block products reads (gen/blocks512.go, gen/blocks256.go). All steps are in bytes.
type blockCall struct {
	dst         unsafe.Pointer // of the first row and panel
	stride      uintptr        // to the next row
	numbers     unsafe.Pointer
	scales      unsafe.Pointer
	numbersGap  uintptr // from the end of a panel's numbers to those of the next
	scalesGap   uintptr
	numbersBack uintptr // from the end of a panel's numbers to their beginning
	scalesBack  uintptr
	panels      uintptr
	tiles       uintptr        // of as many rows, one after the other, that each panel is multiplied with
	left        uintptr        // tiles to do: as many
	dstTile     uintptr        // from a tile's results to those of the next
	q           unsafe.Pointer // of the first row
	scale       unsafe.Pointer
	offset      unsafe.Pointer // what the unsigned weights have too much: minus8, minus32 or bias
	sum         unsafe.Pointer
	height      uintptr // rows of a tile
	rows        uintptr // rows to multiply
	blocks      uintptr
	ahead       uintptr // prefetch so far ahead, or 0
	halved      uintptr // not 0: half a block's weights are prefetched with each block
}

// floatCall is what the assembly of float products reads (gen/floats.go), and of which it changes table, k and fetch. All
// steps are in bytes.
type floatCall struct {
	dst       unsafe.Pointer
	dstStride uintptr        // to the next row; the next panel's results follow at once
	table     unsafe.Pointer // pointers to the weights of the panels, for each segment
	tableStep uintptr        // to the next segment's
	segment   uintptr        // columns of a segment
	stride    uintptr        // to the weights of the next column
	x         unsafe.Pointer
	xStride   uintptr
	k         uintptr // columns
	rows      uintptr
	panels    uintptr
	ahead     uintptr        // prefetch so far ahead
	fetch     unsafe.Pointer // pairs of pointers to what is fetched beside each segment, or nil
}

// quantizeCall is what the assembly of quantisation reads (gen/quantize.go).
type quantizeCall struct {
	x                                             unsafe.Pointer
	q, scale, sum, minus8, minus16, minus32, bias unsafe.Pointer
	blocks                                        uintptr
	height                                        uintptr // rows of the tile
}

// softmaxCall is what the assembly of softmax reads and writes (gen/softmax.go).
type softmaxCall struct {
	scores       unsafe.Pointer
	lo, hi       int
	scale, limit float32
	top          float32
	sums         [lanes]float32
}

// unpackCall is what the assembly of unpacking reads (gen/unpack.go).
type unpackCall struct {
	dst, numbers unsafe.Pointer
	blocks       uintptr
}
