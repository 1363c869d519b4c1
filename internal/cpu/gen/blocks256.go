package main

import "fmt"

// Registers of the 256-bit block kernels, which work on the two halves of a panel, 8 rows each, one after the other.
// There is no VPDPBUSD: VPMADDUBSW multiplies unsigned weights with signed activations and adds pairs into 16 bits,
// VPMADDWD by ones makes 32 bits of them. How many groups of 4 columns may be added in 16 bits depends on the greatest
// weight: all eight of a block for nibbles, four for 5-bit numbers, two for 6-bit ones. Bytes of Q8 would overflow
// already in the pair; their sign is moved to the activation (VPSIGNB), which also removes the offset.
//
// A row needs for a block of nibbles 8 VPMADDUBSW, 7 VPADDW and 5 other operations, for bytes 8·4 + 4.
const (
	yWeight  = 0  // Y0 and, nibbles, Y1: weights of a group
	yProduct = 2  // and 3
	yScale   = 4  // Q6_K: first half
	yMin     = 5  // Q6_K: second half
	yCodes   = 5  // what nibbles stand for, in formats that have no minimum
	ySum     = 8  // Y8–Y11: 16-bit or 32-bit sums of up to four rows
	yHalf    = 10 // Q6_K, which takes two rows: the first half's products
	yAcc     = 12 // Y12–Y15: accumulators
)

// yWords are the 16-bit sums of a second part of the groups.
var yWords = [4]int{1, 3, 6, 7}

// heights256 are the numbers of activation rows of the 256-bit kernels.
func (k blockKind) heights256() []int {
	if k.halves {
		return []int{1, 2}
	}
	return []int{1, 2, 3, 4}
}

// wordGroups is the number of groups whose products are added in 16 bits.
func (k blockKind) wordGroups() int {
	switch {
	case k.codes.offset == 128:
		return 1
	case k.codes.offset > 0:
		return 4 // numbers below 32, as of 5 bits
	case k.bits == 4:
		return 8
	case k.halves:
		return 2
	case k.bits == 5, k.min:
		return 4
	}
	return 1
}

// blocksAVX2 writes one function for each kind of weights.
func blocksAVX2() []byte {
	f := newFile("Products of packed weights in block formats with quantised activations, with AVX2.")
	k := &rowKernels{f, avx2, constants{f, f.constants}}
	for _, kind := range blockKinds {
		f.text("blocks"+kind.name+"AVX2", 8, fmt.Sprintf(`
blocks%sAVX2 multiplies c.rows rows of a tile with c.panels panels (docs/arithmetic.md §5).
func blocks%sAVX2(c *blockCall)`, kind.name, kind.name))
		f.op("MOVQ", "c+0(FP)", "BX")
		f.op("MOVQ", "blockCall_stride(BX)", "R14")
		f.op("MOVQ", "blockCall_dst(BX)", "DI")
		f.op("MOVQ", "blockCall_numbers(BX)", "SI")
		f.op("MOVQ", "blockCall_scales(BX)", "DX")
		f.op("MOVQ", "blockCall_height(BX)", "R13")
		f.op("SHLQ", "$2", "R13")
		f.op("MOVQ", "R13", "R12")
		f.op("SHLQ", "$3", "R12")
		f.op("MOVQ", "blockCall_panels(BX)", "R15")
		kind.codes.load256(f)
		f.op("MOVQ", "blockCall_rows(BX)", "AX")
		heights := kind.heights256()
		labels := make([]string, len(heights))
		for i, h := range heights {
			labels[i] = f.label(fmt.Sprintf("rows%d", h))
			f.op("CMPQ", "AX", imm(h))
			f.op("JEQ", labels[i])
		}
		f.op("UNDEF")
		for i, h := range heights {
			f.place(labels[i])
			halfPanels{k, kind, h}.emit()
		}
	}
	return f.finish()
}

// halfPanels emits the loop over panels for a number of rows.
type halfPanels struct {
	*rowKernels
	kind blockKind
	rows int
}

func (p halfPanels) emit() {
	again := p.label("panel")
	p.place(again)
	for half := range 2 {
		p.half(half)
		if half == 0 {
			p.op("SUBQ", "blockCall_numbersBack(BX)", "SI")
			p.op("SUBQ", "blockCall_scalesBack(BX)", "DX")
		}
	}
	p.op("ADDQ", "blockCall_numbersGap(BX)", "SI")
	p.op("ADDQ", "blockCall_scalesGap(BX)", "DX")
	p.op("ADDQ", "$64", "DI")
	p.op("DECQ", "R15")
	p.op("JNZ", again)
	p.ret()
}

// half emits the product with 8 rows of the panel.
func (p halfPanels) half(half int) {
	p.op("MOVQ", "blockCall_q(BX)", "R8")
	p.op("MOVQ", "blockCall_scale(BX)", "R9")
	p.op("MOVQ", "blockCall_offset(BX)", "R10")
	p.op("MOVQ", "blockCall_sum(BX)", "R11")
	p.op("MOVQ", "blockCall_blocks(BX)", "CX")
	for r := range p.rows {
		p.op("VXORPS", y(yAcc+r), y(yAcc+r), y(yAcc+r))
	}
	record, loop := p.label("record"), p.label("block")
	p.place(record)
	if p.kind.k {
		p.op("MOVQ", "DX", "AX")
		if p.kind.min {
			p.op("ADDQ", "$64", "DX")
		} else {
			p.op("ADDQ", "$32", "DX")
		}
	}
	p.place(loop)
	p.block(half)
	p.op("DECQ", "CX")
	if p.kind.k {
		p.op("TESTQ", "$7", "CX")
		p.op("JNZ", loop)
		p.op("TESTQ", "CX", "CX")
	}
	p.op("JNZ", record)
	p.op("MOVQ", "DI", "AX")
	for r := range p.rows {
		p.op("VMOVUPS", y(yAcc+r), mem(32*half, "AX"))
		if r < p.rows-1 {
			p.op("ADDQ", "R14", "AX")
		}
	}
}

// block emits the work on one block of 32 columns.
func (p halfPanels) block(half int) {
	k := p.kind
	p.scales(half)
	if k.halves {
		p.dot(half, 0, 4)
		p.firstHalf()
		p.dot(half, 4, 4)
		p.secondHalf(half)
	} else {
		p.dot(half, 0, 8)
		for r := range p.rows {
			p.product(r)
		}
	}
	p.op("ADDQ", imm(k.blockBytes()), "SI")
	p.op("ADDQ", "R12", "R8")
	p.op("ADDQ", "R13", "R9")
	if k.halves {
		p.op("LEAQ", "(R10)(R13*2)", "R10")
	} else if !k.min {
		p.op("ADDQ", "R13", "R10")
	}
	if k.min {
		p.op("ADDQ", "R13", "R11")
	}
}

// scales emits the loading of the block's scales.
func (p halfPanels) scales(half int) {
	switch k := p.kind; {
	case k.halves:
		p.op("VPMOVSXBD", mem(8*half, "DX"), y(yScale))
		p.op("VPMOVSXBD", mem(16+8*half, "DX"), y(yMin))
		p.op("VCVTDQ2PS", y(yScale), y(yScale))
		p.op("VCVTDQ2PS", y(yMin), y(yMin))
		p.op("ADDQ", "$32", "DX")
	case k.k:
		p.op("VPMOVZXBD", mem(8*half, "DX"), y(yScale))
		p.op("VPMOVZXBD", mem(16+8*half, "DX"), y(yMin))
		p.op("VCVTDQ2PS", y(yScale), y(yScale))
		p.op("VCVTDQ2PS", y(yMin), y(yMin))
		p.op("VCVTPH2PS", mem(16*half, "AX"), y(yProduct)) // d
		p.op("VMULPS", y(yProduct), y(yScale), y(yScale))
		p.op("VCVTPH2PS", mem(32+16*half, "AX"), y(yProduct)) // dmin
		p.op("VMULPS", y(yProduct), y(yMin), y(yMin))
		p.op("ADDQ", "$32", "DX")
	case k.min:
		p.op("VCVTPH2PS", mem(16*half, "DX"), y(yScale))
		p.op("VCVTPH2PS", mem(32+16*half, "DX"), y(yMin))
		p.op("ADDQ", "$64", "DX")
	case k.wide:
		p.op("VPMOVZXWD", mem(16*half, "DX"), y(yScale))
		p.op("VPSLLD", "$16", y(yScale), y(yScale))
		p.op("ADDQ", "$32", "DX")
	default:
		p.op("VCVTPH2PS", mem(16*half, "DX"), y(yScale))
		p.op("ADDQ", "$32", "DX")
	}
}

// dot emits the integer products of n groups from first into the sums of all rows, as 32 bits.
func (p halfPanels) dot(half, first, n int) {
	k, per := p.kind, p.kind.wordGroups()
	ones := p.float("oneWords", 0x00010001)
	for i := 0; i < n; i++ {
		g := first + i
		w, magnitude := y(yWeight), y(yWeight+1)
		group256(p.file, k.bits, g, half, w, y(yProduct))
		k.codes.lookup256(p.file, w)
		if per == 1 {
			p.op("VPXOR", p.float("offset128", 0x80808080), w, w)
			p.op("VPABSB", w, magnitude)
		}
		for r := range p.rows {
			a, sum := y(yProduct), y(ySum+r)
			p.op("VPBROADCASTD", mem(32*r+4*g, "R8"), a)
			if per == 1 {
				p.op("VPSIGNB", w, a, a)
				p.op("VPMADDUBSW", a, magnitude, a)
				p.op("VPMADDWD", ones, a, a)
				p.accumulate("VPADDD", i == 0, a, sum)
				continue
			}
			p.op("VPMADDUBSW", a, w, a)
			p.accumulate("VPADDW", i%per == 0, a, p.words(r, i/per))
		}
		if per > 1 && i%per == per-1 {
			p.widen(i/per, ones)
		}
	}
}

// words is the register of the 16-bit sums of row r: of the first part of the groups the row's sum, of later ones the
// one they are added from.
func (p halfPanels) words(r, part int) string {
	if part == 0 {
		return y(ySum + r)
	}
	return y(yWords[r])
}

// widen emits the conversion of 16-bit sums to 32 bits, and their addition to those of the first part.
func (p halfPanels) widen(part int, ones string) {
	for r := range p.rows {
		w := p.words(r, part)
		p.op("VPMADDWD", ones, w, w)
		if part > 0 {
			p.op("VPADDD", w, y(ySum+r), y(ySum+r))
		}
	}
}

// accumulate emits sum += a, or sum = a for the first.
func (p halfPanels) accumulate(add string, first bool, a, sum string) {
	if first {
		p.op("VMOVDQA", a, sum)
		return
	}
	p.op(add, a, sum, sum)
}

// product emits the addition of row r's block to its accumulator.
func (p halfPanels) product(r int) {
	k, t, dot, acc := p.kind, y(yProduct), y(ySum+r), y(yAcc+r)
	if k.wordGroups() > 1 && !k.min {
		p.op("VPBROADCASTD", mem(4*r, "R10"), t)
		p.op("VPADDD", t, dot, dot)
	}
	p.op("VCVTDQ2PS", dot, dot)
	p.op("VBROADCASTSS", mem(4*r, "R9"), t)
	p.op("VMULPS", y(yScale), t, t)
	p.op("VFMADD231PS", t, dot, acc)
	if k.min {
		p.op("VBROADCASTSS", mem(4*r, "R11"), t)
		if k.k {
			p.op("VFNMADD231PS", y(yMin), t, acc)
		} else {
			p.op("VFMADD231PS", y(yMin), t, acc)
		}
	}
}

// firstHalf emits the products of the first 16 columns of Q6_K with their scales.
func (p halfPanels) firstHalf() {
	for r := range p.rows {
		p.halfFloat(r, 0)
		p.op("VMULPS", y(yScale), y(ySum+r), y(yHalf+r))
	}
}

// secondHalf emits those of the second 16 columns, and the addition of the block to the accumulators.
func (p halfPanels) secondHalf(half int) {
	t, d := y(yProduct), y(yProduct+1)
	for r := range p.rows {
		p.halfFloat(r, 1)
		p.op("VFMADD231PS", y(yMin), y(ySum+r), y(yHalf+r))
		p.op("VCVTPH2PS", mem(16*half, "AX"), d)
		p.op("VBROADCASTSS", mem(4*r, "R9"), t)
		p.op("VMULPS", d, t, t)
		p.op("VFMADD231PS", t, y(yHalf+r), y(yAcc+r))
	}
}

// halfFloat emits the integer product of 16 columns, without the offset of 32, as float32.
func (p halfPanels) halfFloat(r, part int) {
	t, dot := y(yProduct), y(ySum+r)
	p.op("VPBROADCASTD", mem(8*r+4*part, "R10"), t)
	p.op("VPADDD", t, dot, dot)
	p.op("VCVTDQ2PS", dot, dot)
}
