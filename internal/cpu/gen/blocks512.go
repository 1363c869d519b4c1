package main

import (
	"fmt"

	"github.com/quire-ai/quire/internal/tensor"
)

// blockKind is what the inner loop must know of a layout of weights (see layout in package cpu).
type blockKind struct {
	name   string // of the function's suffix
	bits   int    // of a number
	min    bool   // the format has a minimum; else its unsigned numbers are offset
	k      bool   // scales are products of d and 8-bit scales, in records of eight blocks
	halves bool   // two scales a block: Q6_K
	codes  codes  // what the numbers stand for, if not for themselves
	wide   bool   // scales are bfloat16, for their range
}

// codes are the unsigned numbers that the sixteen nibbles of a format stand for.
type codes struct {
	format tensor.DType // 0 for none
	offset int          // added to make them unsigned
}

var blockKinds = []blockKind{
	{name: "Q8", bits: 8},
	{name: "Q4", bits: 4},
	{name: "Q5", bits: 5},
	{name: "N4", bits: 4, codes: codes{tensor.IQ4_NL, 128}},
	{name: "M4", bits: 4, codes: codes{tensor.MXFP4, 16}, wide: true},
	{name: "Q8Min", bits: 8, min: true},
	{name: "Q4Min", bits: 4, min: true},
	{name: "Q5Min", bits: 5, min: true},
	{name: "Q8K", bits: 8, min: true, k: true},
	{name: "Q4K", bits: 4, min: true, k: true},
	{name: "Q5K", bits: 5, min: true, k: true},
	{name: "B6K", bits: 8, k: true, halves: true},
	{name: "Q6K", bits: 6, k: true, halves: true},
}

// scaleBytes is the size of the scales of a block, on average.
func (k blockKind) scaleBytes() int {
	switch {
	case k.halves:
		return 36
	case k.k:
		return 40
	case k.min:
		return 64
	}
	return 32
}

// blockBytes is the size of the numbers of a block.
func (k blockKind) blockBytes() int { return 64 * k.bits }

// heights are the numbers of activation rows the kernels are made for; others are sums of these.
var heights = []int{1, 2, 3, 4, 6, 8, 12, tileRows}

// tileRows is the number of rows of a whole tile of activations.
const tileRows = 16

// Registers of the 512-bit block kernels. A row needs, for a block of 32 columns, eight VPDPBUSD with an activation
// broadcast from memory, and VCVTDQ2PS, VMULPS and VFMADD (with a minimum one more): 11 operations on ports 0 and 5 for
// 1024 multiplications and additions, so 8/11 of the VPDPBUSD peak is the limit.
const (
	zWeights = 0  // Z0–Z7: group g of the block's weights
	zScale   = 8  // weights' scales; Q6_K: those of the first half
	zMin     = 9  // weights' minima; Q6_K: scales of the second half
	zCodes   = 9  // what nibbles stand for, in formats that have no minimum
	zD       = 10 // k-quants: d of the record
	zDMin    = 11 // k-quants: dmin of the record
	zMask    = 12 // 0x0f bytes
	zProduct = 13 // scale products
	zAcc     = 16 // Z16–Z31: accumulators of up to 16 rows
)

// dots are the registers for integer products, of which so many rows are interleaved.
func (k blockKind) dots() []int {
	if k.k {
		return []int{14, 15}
	}
	return []int{10, 11, 14, 15}
}

// blocksAVX512 writes one function for each kind of weights.
func blocksAVX512() []byte {
	f := newFile("Products of packed weights in block formats with quantised activations, with AVX-512 VNNI.")
	for _, k := range blockKinds {
		f.text("blocks"+k.name+"AVX512", 8, fmt.Sprintf(`
blocks%sAVX512 multiplies c.rows rows of a tile with c.panels panels (docs/arithmetic.md §5).
func blocks%sAVX512(c *blockCall)`, k.name, k.name))
		f.op("MOVQ", "c+0(FP)", "BX")
		f.op("MOVQ", "blockCall_stride(BX)", "R14")
		f.op("MOVQ", "blockCall_dst(BX)", "DI")
		f.op("MOVQ", "blockCall_numbers(BX)", "SI")
		f.op("MOVQ", "blockCall_scales(BX)", "DX")
		f.op("MOVQ", "blockCall_height(BX)", "R13")
		f.op("SHLQ", "$2", "R13") // bytes of a plane of numbers per block
		f.op("MOVQ", "R13", "R12")
		f.op("SHLQ", "$3", "R12") // bytes of q per block
		f.op("MOVQ", "blockCall_panels(BX)", "R15")
		if k.bits < 8 {
			f.op("MOVL", "$0x0f0f0f0f", "AX")
			f.op("VPBROADCASTD", "AX", z(zMask))
		}
		k.codes.load512(f)
		f.op("MOVQ", "blockCall_rows(BX)", "AX")
		labels := make([]string, len(heights))
		for i, h := range heights {
			labels[i] = f.label(fmt.Sprintf("rows%d", h))
			f.op("CMPQ", "AX", imm(h))
			f.op("JEQ", labels[i])
		}
		f.op("UNDEF")
		for i, h := range heights {
			f.place(labels[i])
			k.panel(f, h)
		}
	}
	return f.finish()
}

// panel emits the loops over panels and, for h rows, tiles: a panel is multiplied with all tiles in turn, while the next
// one is fetched (see block). R8 to R11 walk through the tiles, which lie one after the other.
func (k blockKind) panel(f *file, h int) {
	again, tile := f.label("panel"), f.label("tile")
	f.place(again)
	f.op("MOVQ", "blockCall_q(BX)", "R8")
	f.op("MOVQ", "blockCall_scale(BX)", "R9")
	f.op("MOVQ", "blockCall_offset(BX)", "R10")
	f.op("MOVQ", "blockCall_sum(BX)", "R11")
	f.op("MOVQ", "blockCall_ahead(BX)", "AX") // weights to prefetch, or 0
	near := f.label("near")
	f.op("TESTQ", "AX", "AX")
	f.op("JZ", near)
	f.op("ADDQ", "SI", "AX")
	f.place(near)
	if h == tileRows {
		f.place(tile)
	}
	f.op("MOVQ", "blockCall_blocks(BX)", "CX")
	for r := range h {
		f.op("VPXORD", z(zAcc+r), z(zAcc+r), z(zAcc+r))
	}
	if k.k {
		k.records(f, h)
	} else {
		loop := f.label("block")
		f.place(loop)
		k.block(f, h)
		f.op("DECQ", "CX")
		f.op("JNZ", loop)
	}
	if h == tileRows {
		k.nextTile(f, tile)
	} else {
		f.op("MOVQ", "DI", "CX")
		stores(f, h)
	}
	f.op("ADDQ", "blockCall_numbersGap(BX)", "SI")
	f.op("ADDQ", "blockCall_scalesGap(BX)", "DX")
	f.op("ADDQ", "$64", "DI")
	f.op("DECQ", "R15")
	f.op("JNZ", again)
	f.ret()
}

// nextTile emits the storing of a whole tile and the way back to the panel's beginning for the next one. What is
// fetched ahead is shared out between the first two tiles.
func (k blockKind) nextTile(f *file, tile string) {
	done := f.label("done")
	f.op("MOVQ", "blockCall_tiles(BX)", "CX")
	f.op("SUBQ", "blockCall_left(BX)", "CX")
	f.op("IMULQ", "blockCall_dstTile(BX)", "CX")
	f.op("ADDQ", "DI", "CX")
	stores(f, tileRows)
	f.op("DECQ", "blockCall_left(BX)")
	f.op("JZ", done)
	f.op("SUBQ", "blockCall_numbersBack(BX)", "SI")
	f.op("SUBQ", "blockCall_scalesBack(BX)", "DX")
	f.op("MOVQ", "blockCall_tiles(BX)", "CX")
	f.op("SUBQ", "blockCall_left(BX)", "CX")
	f.op("CMPQ", "CX", "$2")
	f.op("JLT", tile)
	f.op("XORL", "AX", "AX")
	f.op("JMP", tile)
	f.place(done)
	f.op("MOVQ", "blockCall_tiles(BX)", "CX")
	f.op("MOVQ", "CX", "blockCall_left(BX)")
}

// stores emits the storing of h rows from CX, which is left at the last one.
func stores(f *file, h int) {
	for r := range h {
		f.op("VMOVUPS", z(zAcc+r), "(CX)")
		if r < h-1 {
			f.op("ADDQ", "R14", "CX")
		}
	}
}

// records emits the loop over records of eight blocks.
func (k blockKind) records(f *file, h int) {
	record, loop := f.label("record"), f.label("block")
	f.place(record)
	k.recordScales(f)
	f.place(loop)
	k.block(f, h)
	f.op("DECQ", "CX")
	f.op("TESTQ", "$7", "CX")
	f.op("JNZ", loop)
	f.op("TESTQ", "CX", "CX")
	f.op("JNZ", record)
}

// recordScales emits the loading of what a record begins with.
func (k blockKind) recordScales(f *file) {
	f.op("VCVTPH2PS", "(DX)", z(zD))
	if k.min {
		f.op("VCVTPH2PS", "32(DX)", z(zDMin))
		f.op("ADDQ", "$64", "DX")
	} else {
		f.op("ADDQ", "$32", "DX")
	}
}

// block emits the work on one block of 32 columns.
func (k blockKind) block(f *file, h int) {
	bytes := k.blockBytes()
	near := f.label("near")
	f.op("TESTQ", "AX", "AX")
	f.op("JZ", near)
	k.fetch(f, near)
	f.place(near)
	numbers512(f, k.bits, z(zMask))
	k.codes.lookup512(f)
	f.op("ADDQ", imm(bytes), "SI")
	k.scales(f)
	if k.halves {
		for r := range h {
			k.rowOfHalves(f, r)
		}
	} else {
		dots := k.dots()
		for r := 0; r < h; r += len(dots) {
			k.rows(f, r, min(len(dots), h-r))
		}
	}
	f.op("ADDQ", "R12", "R8")
	f.op("ADDQ", "R13", "R9")
	if !k.min {
		f.op("ADDQ", "R13", "R10")
	}
	if k.halves {
		f.op("ADDQ", "R13", "R10")
	}
	if k.min {
		f.op("ADDQ", "R13", "R11")
	}
}

// fetch emits the fetching of weights that are needed later: a panel's numbers and scales, which follow one another, in
// equal steps; where a panel is multiplied with several tiles, half as much in each of two.
func (k blockKind) fetch(f *file, done string) {
	all, half := k.blockBytes()+k.scaleBytes(), f.label("half")
	f.op("CMPQ", "blockCall_halved(BX)", "$0")
	f.op("JNE", half)
	for i := 0; i < all; i += 64 {
		f.op("PREFETCHT1", mem(i, "AX"))
	}
	f.op("ADDQ", imm(all), "AX")
	f.op("JMP", done)
	f.place(half)
	for i := 0; i < all/2; i += 64 {
		f.op("PREFETCHT1", mem(i, "AX"))
	}
	f.op("ADDQ", imm(all/2), "AX")
}

// scales emits the loading of the block's scales.
func (k blockKind) scales(f *file) {
	switch {
	case k.halves:
		f.op("VPMOVSXBD", "(DX)", z(zScale))
		f.op("VPMOVSXBD", "16(DX)", z(zMin))
		f.op("VCVTDQ2PS", z(zScale), z(zScale))
		f.op("VCVTDQ2PS", z(zMin), z(zMin))
		f.op("ADDQ", "$32", "DX")
	case k.k:
		f.op("VPMOVZXBD", "(DX)", z(zScale))
		f.op("VPMOVZXBD", "16(DX)", z(zMin))
		f.op("VCVTDQ2PS", z(zScale), z(zScale))
		f.op("VCVTDQ2PS", z(zMin), z(zMin))
		f.op("VMULPS", z(zD), z(zScale), z(zScale))
		f.op("VMULPS", z(zDMin), z(zMin), z(zMin))
		f.op("ADDQ", "$32", "DX")
	case k.min:
		f.op("VCVTPH2PS", "(DX)", z(zScale))
		f.op("VCVTPH2PS", "32(DX)", z(zMin))
		f.op("ADDQ", "$64", "DX")
	case k.wide:
		f.op("VPMOVZXWD", "(DX)", z(zScale))
		f.op("VPSLLD", "$16", z(zScale), z(zScale))
		f.op("ADDQ", "$32", "DX")
	default:
		f.op("VCVTPH2PS", "(DX)", z(zScale))
		f.op("ADDQ", "$32", "DX")
	}
}

// rows emits the products of n rows from first, interleaved so that no VPDPBUSD waits for the one before it. A single
// row has its columns in as many chains as there are registers instead.
func (k blockKind) rows(f *file, first, n int) {
	dots := k.dots()
	chains := len(dots) / n // of a row: 1, 2 or 4
	dot := func(r, g int) string { return z(dots[r*chains+g%chains]) }
	for r := range n {
		for c := range chains {
			if c == 0 && !k.min {
				f.op("VPBROADCASTD", mem(4*(first+r), "R10"), dot(r, c))
			} else {
				f.op("VPXORD", dot(r, c), dot(r, c), dot(r, c))
			}
		}
	}
	for g := range 8 {
		for r := range n {
			f.op("VPDPBUSD.BCST", mem(32*(first+r)+4*g, "R8"), z(zWeights+g), dot(r, g))
		}
	}
	for step := chains / 2; step > 0; step /= 2 {
		for r := range n {
			for c := range step {
				f.op("VPADDD", dot(r, c+step), dot(r, c), dot(r, c))
			}
		}
	}
	for r := range n {
		acc := z(zAcc + first + r)
		f.op("VCVTDQ2PS", dot(r, 0), dot(r, 0))
		f.op("VMULPS.BCST", mem(4*(first+r), "R9"), z(zScale), z(zProduct))
		f.op("VFMADD231PS", z(zProduct), dot(r, 0), acc)
		switch {
		case k.min && k.k: // the minimum is subtracted
			f.op("VFNMADD231PS.BCST", mem(4*(first+r), "R11"), z(zMin), acc)
		case k.min:
			f.op("VFMADD231PS.BCST", mem(4*(first+r), "R11"), z(zMin), acc)
		}
	}
}

// rowOfHalves emits the product of one row in Q6_K: the sum of the two halves' integer products, each times its scale,
// is an integer below 2^24, so that float operations compute it exactly.
func (k blockKind) rowOfHalves(f *file, r int) {
	low, high := z(14), z(15)
	f.op("VPBROADCASTD", mem(8*r, "R10"), low)
	f.op("VPBROADCASTD", mem(8*r+4, "R10"), high)
	for g := range 4 {
		f.op("VPDPBUSD.BCST", mem(32*r+4*g, "R8"), z(zWeights+g), low)
		f.op("VPDPBUSD.BCST", mem(32*r+16+4*g, "R8"), z(zWeights+4+g), high)
	}
	f.op("VCVTDQ2PS", low, low)
	f.op("VCVTDQ2PS", high, high)
	f.op("VMULPS", z(zScale), low, low)
	f.op("VFMADD231PS", z(zMin), high, low)
	f.op("VMULPS.BCST", mem(4*r, "R9"), z(zD), z(zProduct))
	f.op("VFMADD231PS", z(zProduct), low, z(zAcc+r))
}
