package main

import (
	"fmt"
	"slices"
)

// floatKinds are the formats of float weights.
var floatKinds = []string{"F32", "F16", "BF16"}

// panelsOf is how many panels a kernel for h rows multiplies at once, beside the one that takes a single panel: a
// multiply-add has a latency of 4 cycles and two start in each, so that eight accumulators are wanted.
func panelsOf(v vector, h int) int {
	switch {
	case v.bits == 256:
		return 1
	case h <= 4:
		return 4
	case h <= 6:
		return 2
	}
	return 1
}

// floatHeights are the row counts the float kernels are made for.
func floatHeights(v vector) []int {
	if v.bits == 256 {
		return []int{1, 2, 3, 4, 6} // two accumulators a row
	}
	return append(slices.Clone(heights), 24) // of attention
}

// floats writes one function for each format of float weights.
func floats(v vector) []byte {
	f := newFile("Products of float weights in panels with float activations; also the products of attention.")
	for _, kind := range floatKinds {
		name := "floats" + kind + v.suffix
		f.text(name, 8, fmt.Sprintf(`
%s multiplies c.rows rows with c.panels panels (docs/arithmetic.md §6).
func %s(c *floatCall)`, name, name))
		f.op("MOVQ", "c+0(FP)", "BX")
		f.op("MOVQ", "floatCall_rows(BX)", "AX")
		f.op("MOVQ", "floatCall_panels(BX)", "CX")
		type variant struct {
			height, panels int
			label          string
		}
		var variants []variant
		for _, h := range floatHeights(v) {
			for _, p := range []int{1, panelsOf(v, h)} {
				if p == 1 && len(variants) > 0 && variants[len(variants)-1].height == h {
					continue
				}
				variants = append(variants, variant{h, p, f.label(fmt.Sprintf("rows%dpanels%d", h, p))})
			}
		}
		for _, w := range variants {
			next := f.label("next")
			f.op("CMPQ", "AX", imm(w.height))
			f.op("JNE", next)
			f.op("CMPQ", "CX", imm(w.panels))
			f.op("JEQ", w.label)
			f.place(next)
		}
		f.op("UNDEF")
		for _, w := range variants {
			f.place(w.label)
			floatPanel(f, v, kind, w.height, w.panels)
		}
	}
	return f.finish()
}

// floatRow is the operand of row r: R8 is row 0, R9 row 8, DI row 16, R10 the stride and R11, R12, R13 three, five and seven times
// the stride.
func floatRow(r int) string {
	base := []string{"R8", "R9", "DI"}[r/8]
	return "(" + base + ")" + []string{"", "(R10*1)", "(R10*2)", "(R11*1)", "(R10*4)", "(R12*1)", "(R11*2)", "(R13*1)"}[r%8]
}

// floatPanel emits the product of h rows with p panels. The accumulators come first; with 512 bits a panel is one
// register, with 256 bits two.
func floatPanel(f *file, v vector, kind string, h, p int) {
	parts := 512 / v.bits
	acc := func(r, panel, part int) string { return v.reg((r*p+panel)*parts + part) }
	weight := func(panel, part int) string { return v.reg(h*p*parts + panel*parts + part) }
	broadcast := v.reg(v.registers - 1)
	pointers := []string{"SI", "DI", "DX", "R15"}[:p]

	f.op("MOVQ", "floatCall_x(BX)", "R8")
	f.op("MOVQ", "floatCall_xStride(BX)", "R10")
	f.op("LEAQ", "(R10)(R10*2)", "R11")
	f.op("LEAQ", "(R10)(R10*4)", "R12")
	f.op("LEAQ", "(R11)(R10*4)", "R13")
	f.op("LEAQ", "(R8)(R10*8)", "R9")
	if h > 16 {
		f.op("LEAQ", "(R9)(R10*8)", "DI")
	}
	for i := range h * p * parts {
		v.zero(f, v.reg(i))
	}
	loop := f.label("column")
	f.op("MOVQ", "floatCall_stride(BX)", "R14")
	later := fetched(h, p)
	segment := nextSegment(f, pointers, later)
	f.place(loop)
	for panel, q := range pointers {
		for part := range parts {
			floatWeight(f, v, kind, q, part, weight(panel, part))
		}
		f.op("PREFETCHT1", fmt.Sprintf("(%s)(AX*1)", q))
		f.op("ADDQ", "R14", q)
	}
	for _, q := range later {
		f.op("PREFETCHT1", mem(0, q))
		f.op("ADDQ", "$64", q)
	}
	for r := range h {
		if p == 1 && v.bits == 512 {
			f.op("VFMADD231PS.BCST", floatRow(r), weight(0, 0), acc(r, 0, 0))
			continue
		}
		f.op("VBROADCASTSS", floatRow(r), broadcast)
		for i := range p * parts {
			f.op("VFMADD231PS", broadcast, weight(i/parts, i%parts), acc(r, i/parts, i%parts))
		}
	}
	f.op("ADDQ", "$4", "R8")
	f.op("ADDQ", "$4", "R9")
	if h > 16 {
		f.op("ADDQ", "$4", "DI")
	}
	f.op("DECQ", "CX")
	f.op("JNZ", loop)
	f.op("CMPQ", "floatCall_k(BX)", "$0")
	f.op("JNE", segment)
	f.op("MOVQ", "floatCall_dst(BX)", "AX")
	for r := range h {
		for i := range p * parts {
			f.op("VMOVUPS", acc(r, i/parts, i%parts), mem(i*v.bits/8, "AX"))
		}
		f.op("ADDQ", "floatCall_dstStride(BX)", "AX")
	}
	f.ret()
}

// fetched are the registers for two places in memory that are needed later, of which each column fetches a line: the
// keys and values of attention, which lie scattered. Products of more rows are bound by loads, and read what they need
// often enough.
func fetched(h, p int) []string {
	switch {
	case h > 8:
		return nil
	case p > 2:
		return []string{"R9", "R13"} // of rows that such a kernel does not have
	}
	return []string{"DX", "R15"} // of panels
}

// nextSegment emits the loading of the pointers of a segment, of what is fetched beside it, and the number of its
// columns. It returns its label.
func nextSegment(f *file, pointers, later []string) string {
	segment, whole := f.label("segment"), f.label("whole")
	f.place(segment)
	f.op("MOVQ", "floatCall_table(BX)", "AX")
	for i, q := range pointers {
		f.op("MOVQ", mem(8*i, "AX"), q)
	}
	f.op("ADDQ", "floatCall_tableStep(BX)", "AX")
	f.op("MOVQ", "AX", "floatCall_table(BX)")
	if len(later) > 0 {
		nothing, some := f.label("nothing"), f.label("some")
		f.op("MOVQ", "floatCall_fetch(BX)", "AX")
		f.op("TESTQ", "AX", "AX")
		f.op("JZ", nothing)
		for i, q := range later {
			f.op("MOVQ", mem(8*i, "AX"), q)
		}
		f.op("ADDQ", "$16", "AX")
		f.op("MOVQ", "AX", "floatCall_fetch(BX)")
		f.op("JMP", some)
		f.place(nothing)
		for _, q := range later {
			f.op("MOVQ", "SI", q) // what is in use: nothing new
		}
		f.place(some)
	}
	f.op("MOVQ", "floatCall_segment(BX)", "CX")
	f.op("CMPQ", "CX", "floatCall_k(BX)")
	f.op("JLE", whole)
	f.op("MOVQ", "floatCall_k(BX)", "CX")
	f.place(whole)
	f.op("SUBQ", "CX", "floatCall_k(BX)")
	f.op("MOVQ", "floatCall_ahead(BX)", "AX") // from the weights to those to prefetch
	return segment
}

// floatWeight emits the loading of a register of weights as float32; part is the half of a panel with 256 bits.
func floatWeight(f *file, v vector, kind, pointer string, part int, dst string) {
	lanes := v.bits / 32
	switch kind {
	case "F32":
		f.op("VMOVUPS", mem(4*lanes*part, pointer), dst)
	case "F16":
		f.op("VCVTPH2PS", mem(2*lanes*part, pointer), dst)
	case "BF16":
		f.op("VPMOVZXWD", mem(2*lanes*part, pointer), dst)
		f.op("VPSLLD", "$16", dst, dst)
	}
}
