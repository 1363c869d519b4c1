package main

import "fmt"

// The NEON kernels. Registers hold 128 bits, so a panel of 16 rows is four quarters of 4 rows, and a group of 4 columns of a
// quarter is one register. SDOT by element multiplies it with 4 columns of an activation row: 16 multiplications and
// additions, the lane of the sum being the row.
//
// Go's assembler lacks some instructions. They are written as words, each with the text a disassembler gives for it, which
// a test compares.

// v is a vector register as Go's assembler names it, with an arrangement.
func v(n int, arrangement string) string { return fmt.Sprintf("V%d.%s", n, arrangement) }

// scalar is the register as a number of 128, 64 or 32 bits, which the instruction tells.
func scalar(n int) string { return fmt.Sprintf("F%d", n) }

// word writes an instruction that Go's assembler does not know.
func (f *file) word(code int, format string, args ...any) {
	fmt.Fprintf(f, "\tWORD $0x%08x // "+format+"\n", append([]any{code}, args...)...)
}

// sdot emits dst += the products of w with 4 columns of x.
func (f *file) sdot(dst, w, x, group int) {
	f.word(0x4f80e000|group>>1<<11|group&1<<21|x<<16|w<<5|dst, "sdot v%d.4s, v%d.16b, v%d.4b[%d]", dst, w, x, group)
}

// fmla emits dst += a · element 0 of b, rounded once.
func (f *file) fmla(dst, a, b int) {
	f.word(0x4f801000|b<<16|a<<5|dst, "fmla v%d.4s, v%d.4s, v%d.s[0]", dst, a, b)
}

// fmul emits dst = a · element 0 of b.
func (f *file) fmul(dst, a, b int) {
	f.word(0x4f809000|b<<16|a<<5|dst, "fmul v%d.4s, v%d.4s, v%d.s[0]", dst, a, b)
}

// toFloat emits the conversion of four integers.
func (f *file) toFloat(n int) { f.word(0x4e21d800|n<<5|n, "scvtf v%d.4s, v%d.4s", n, n) }

// widen emits the conversion of four half-precision numbers.
func (f *file) widen(n int) { f.word(0x0e217800|n<<5|n, "fcvtl v%d.4s, v%d.4h", n, n) }

// widenBF emits the conversion of four bfloat16 numbers.
func (f *file) widenBF(n int) { f.word(0x2e613800|n<<5|n, "shll v%d.4s, v%d.4h, #16", n, n) }

func (f *file) zero128(n int) { f.op("VEOR", v(n, "B16"), v(n, "B16"), v(n, "B16")) }

// branches emits the choice of a label by the number in R13.
func (f *file) branches(heights []int) []string {
	labels := make([]string, len(heights))
	for i, h := range heights {
		labels[i] = f.label(fmt.Sprintf("rows%d", h))
		f.op("CMP", imm(h), "R13")
		f.op("BEQ", labels[i])
	}
	f.op("UNDEF")
	return labels
}

var neonHeights = []int{1, 2, 3, 4}

// Registers of the block kernels. A block of 32 columns and a row needs 32 SDOT, and 12 operations to scale them.
const (
	nWeights = 0  // V0–V3: a group of as many quarters as are multiplied at once
	nActs    = 4  // V4–V7: 16 columns of up to four rows
	nDots    = 8  // V8–V15: integer products
	nAcc     = 16 // V16–V23: accumulators
	nScale   = 24 // V24–V27: weights' scales
	nMask    = 28 // what makes signed bytes of packed numbers
	nProduct = 29 // scale products
	nScalar  = 30 // a number of the row
)

// blocksNEON writes the products of Q8 and Q4.
func blocksNEON() []byte {
	f := newFile("Products of packed weights in block formats with quantised activations, with NEON's SDOT.")
	for _, k := range blockKinds[:2] {
		name := "blocks" + k.name + "NEON"
		f.text(name, 8, fmt.Sprintf(`
%s multiplies c.rows rows of a tile with c.panels panels (docs/arithmetic.md §5).
func %s(c *blockCall)`, name, name))
		f.op("MOVD", "c+0(FP)", "R0")
		f.op("MOVD", "blockCall_dst(R0)", "R1")
		f.op("MOVD", "blockCall_stride(R0)", "R2")
		f.op("MOVD", "blockCall_numbers(R0)", "R3")
		f.op("MOVD", "blockCall_scales(R0)", "R4")
		f.op("MOVD", "blockCall_height(R0)", "R10")
		f.op("LSL", "$2", "R10", "R10") // bytes of a plane of numbers per block
		f.op("LSL", "$3", "R10", "R9")  // bytes of q per block
		f.op("MOVD", "blockCall_panels(R0)", "R11")
		f.op("MOVD", "blockCall_rows(R0)", "R13")
		mask := "$0x80" // turns byte + 128 into a signed byte
		if k.bits == 4 {
			mask = "$0x0f"
		}
		f.op("VMOVI", mask, v(nMask, "B16"))
		for i, label := range f.branches(neonHeights) {
			f.place(label)
			neonPanel{f, k, neonHeights[i]}.emit()
		}
	}
	return f.finish()
}

// neonPanel emits the loop over panels for a number of rows.
type neonPanel struct {
	*file
	kind blockKind
	rows int
}

// quarters is how many quarters of a panel are multiplied at once: as many as there are registers for.
func (p neonPanel) quarters() int { return min(4, 8/p.rows/2*2) }

func (p neonPanel) dot(r, i int) int { return nDots + r*p.quarters() + i }
func (p neonPanel) acc(r, i int) int { return nAcc + r*p.quarters() + i }

func (p neonPanel) emit() {
	again := p.label("panel")
	p.place(again)
	for first := 0; first < 4; first += p.quarters() {
		p.pass(first)
	}
	p.op("MOVD", "blockCall_numbersGap(R0)", "R12")
	p.op("ADD", "R12", "R14", "R3")
	p.op("MOVD", "blockCall_scalesGap(R0)", "R12")
	p.op("ADD", "R12", "R15", "R4")
	p.op("ADD", "$64", "R1")
	p.op("SUBS", "$1", "R11", "R11")
	p.op("BNE", again)
	p.op("RET")
}

// pass emits the product with some quarters of a panel, from the first one given.
func (p neonPanel) pass(first int) {
	p.op("MOVD", "R3", "R14")
	p.op("MOVD", "R4", "R15")
	p.op("MOVD", "blockCall_q(R0)", "R5")
	p.op("MOVD", "blockCall_scale(R0)", "R6")
	p.op("MOVD", "blockCall_offset(R0)", "R7")
	p.op("MOVD", "blockCall_blocks(R0)", "R8")
	for i := range p.rows * p.quarters() {
		p.zero128(nAcc + i)
	}
	block := p.label("block")
	p.place(block)
	for i := range p.quarters() {
		p.op("FMOVD", mem(8*(first+i), "R15"), scalar(nScale+i))
		p.widen(nScale + i)
	}
	for r := range p.rows {
		p.start(r)
	}
	for half := range 2 {
		for r := range p.rows {
			p.op("FMOVQ", mem(32*r+16*half, "R5"), scalar(nActs+r))
		}
		for g := range 4 {
			p.group(first, 4*half+g)
		}
	}
	for r := range p.rows {
		p.scale(r)
	}
	p.op("ADD", imm(p.kind.blockBytes()), "R14")
	p.op("ADD", "$32", "R15")
	p.op("ADD", "R9", "R5")
	p.op("ADD", "R10", "R6")
	p.op("ADD", "R10", "R7")
	p.op("SUBS", "$1", "R8", "R8")
	p.op("BNE", block)
	p.op("MOVD", "R1", "R12")
	for r := range p.rows {
		for i := range p.quarters() {
			p.op("FMOVQ", scalar(p.acc(r, i)), mem(16*(first+i), "R12"))
		}
		p.op("ADD", "R2", "R12")
	}
}

// start emits what the integer products of a row begin with: 0, or for nibbles, which stay unsigned, what they have too
// much.
func (p neonPanel) start(r int) {
	if p.kind.bits == 4 {
		p.op("FMOVS", mem(4*r, "R7"), scalar(nScalar))
	}
	for i := range p.quarters() {
		if p.kind.bits == 4 {
			p.op("VDUP", fmt.Sprintf("V%d.S[0]", nScalar), v(p.dot(r, i), "S4"))
		} else {
			p.zero128(p.dot(r, i))
		}
	}
}

// group emits the products of a group of 4 columns.
func (p neonPanel) group(first, g int) {
	for i := range p.quarters() {
		w, at := nWeights+i, 16*(first+i)
		switch {
		case p.kind.bits == 8:
			p.op("FMOVQ", mem(64*g+at, "R14"), scalar(w))
			p.op("VEOR", v(nMask, "B16"), v(w, "B16"), v(w, "B16"))
		case g < 4:
			p.op("FMOVQ", mem(64*g+at, "R14"), scalar(w))
			p.op("VAND", v(nMask, "B16"), v(w, "B16"), v(w, "B16"))
		default:
			p.op("FMOVQ", mem(64*(g-4)+at, "R14"), scalar(w))
			p.op("VUSHR", "$4", v(w, "B16"), v(w, "B16"))
		}
	}
	for r := range p.rows {
		for i := range p.quarters() {
			p.sdot(p.dot(r, i), nWeights+i, nActs+r, g%4)
		}
	}
}

// scale emits the addition of a row's block to its accumulators.
func (p neonPanel) scale(r int) {
	p.op("FMOVS", mem(4*r, "R6"), scalar(nScalar))
	for i := range p.quarters() {
		dot := p.dot(r, i)
		p.toFloat(dot)
		p.fmul(nProduct, nScale+i, nScalar)
		p.op("VFMLA", v(nProduct, "S4"), v(dot, "S4"), v(p.acc(r, i), "S4"))
	}
}

// floatsNEON writes the products of float weights: 4 FMLA for a column and a row.
func floatsNEON() []byte {
	f := newFile("Products of float weights in panels with float activations; also the products of attention.")
	for _, kind := range floatKinds {
		name := "floats" + kind + "NEON"
		f.text(name, 8, fmt.Sprintf(`
%s multiplies c.rows rows with one panel (docs/arithmetic.md §6).
func %s(c *floatCall)`, name, name))
		f.op("MOVD", "c+0(FP)", "R0")
		f.op("MOVD", "floatCall_stride(R0)", "R2")
		f.op("MOVD", "floatCall_k(R0)", "R8")
		f.op("MOVD", "floatCall_table(R0)", "R9")
		f.op("MOVD", "floatCall_tableStep(R0)", "R10")
		f.op("MOVD", "floatCall_segment(R0)", "R11")
		f.op("MOVD", "floatCall_rows(R0)", "R13")
		for i, label := range f.branches(neonHeights) {
			f.place(label)
			f.floatRowsNEON(kind, neonHeights[i])
		}
	}
	return f.finish()
}

// floatRowsNEON emits the product of h rows with a panel: V0–V3 are a column of weights, V4–V7 the rows' numbers, V16
// and on the accumulators.
func (f *file) floatRowsNEON(kind string, h int) {
	rows := []string{"R3", "R4", "R5", "R6"}[:h]
	f.op("MOVD", "floatCall_xStride(R0)", "R12")
	f.op("MOVD", "floatCall_x(R0)", rows[0])
	for r := range h - 1 {
		f.op("ADD", "R12", rows[r], rows[r+1])
	}
	for i := range 4 * h {
		f.zero128(nAcc + i)
	}
	segment, whole, column := f.label("segment"), f.label("whole"), f.label("column")
	f.place(segment)
	f.op("MOVD", "(R9)", "R1")
	f.op("ADD", "R10", "R9")
	f.op("MOVD", "R11", "R7")
	f.op("CMP", "R8", "R7")
	f.op("BLE", whole)
	f.op("MOVD", "R8", "R7")
	f.place(whole)
	f.op("SUB", "R7", "R8")
	f.place(column)
	for i := range 4 {
		switch kind {
		case "F32":
			f.op("FMOVQ", mem(16*i, "R1"), scalar(i))
		case "F16":
			f.op("FMOVD", mem(8*i, "R1"), scalar(i))
			f.widen(i)
		case "BF16":
			f.op("FMOVD", mem(8*i, "R1"), scalar(i))
			f.widenBF(i)
		}
	}
	f.op("ADD", "R2", "R1")
	for r, x := range rows {
		f.op("FMOVS.P", mem(4, x), scalar(nActs+r))
		for i := range 4 {
			f.fmla(nAcc+4*r+i, i, nActs+r)
		}
	}
	f.op("SUBS", "$1", "R7", "R7")
	f.op("BNE", column)
	f.op("CBNZ", "R8", segment)
	f.op("MOVD", "floatCall_dst(R0)", "R1")
	f.op("MOVD", "floatCall_dstStride(R0)", "R2")
	for r := range h {
		for i := range 4 {
			f.op("FMOVQ", scalar(nAcc+4*r+i), mem(16*i, "R1"))
		}
		f.op("ADD", "R2", "R1")
	}
	f.op("RET")
}

// peakNEON writes what peak does.
func peakNEON() []byte {
	f := newFile("Loops that measure what this processor can do at best.")
	loop := func(body func(i int)) {
		f.op("MOVD", "n+0(FP)", "R1")
		again := f.label("again")
		f.place(again)
		for i := range 12 {
			body(i)
		}
		f.op("SUBS", "$1", "R1", "R1")
		f.op("BNE", again)
		f.op("RET")
	}
	f.text("peakIntsNEON", 8, `peakIntsNEON multiplies 4 bytes with 4 in each 32-bit lane, 12 times n.
func peakIntsNEON(n int)`)
	loop(func(i int) { f.sdot(i, 14, 15, 0) })
	f.text("peakFloatsNEON", 8, `peakFloatsNEON multiplies and adds in each 32-bit lane, 12 times n.
func peakFloatsNEON(n int)`)
	for i := range 16 {
		f.zero128(i)
	}
	loop(func(i int) { f.fmla(i, 14, 15) })
	f.text("peakReadNEON", 16, `peakReadNEON reads n bytes, a multiple of 256.
func peakReadNEON(p *byte, n int)`)
	f.op("MOVD", "p+0(FP)", "R0")
	f.op("MOVD", "n+8(FP)", "R1")
	again := f.label("again")
	f.place(again)
	for i := range 16 {
		f.op("FMOVQ", mem(16*i, "R0"), scalar(i))
	}
	f.op("ADD", "$256", "R0")
	f.op("SUBS", "$256", "R1", "R1")
	f.op("BNE", again)
	f.op("RET")
	return f.finish()
}
