package main

import (
	"fmt"
	"math"
)

// quantize writes the quantisation of whole blocks of 32 activations (docs/arithmetic.md §4).
//
// The greatest magnitude is found among the bits as integers, which orders NaN above infinity above all numbers; the
// two divisions are scalar, so that they overlap with the rest of the next blocks. The half sums come from the packed
// bytes by VPMADDUBSW and VPMADDWD with ones, and two horizontal additions, which leave the sum of 16 columns in each
// half of a register. About 60 operations a block.
func quantize(v vector) []byte {
	f := newFile("Quantisation of activations to blocks of 32 bytes.")
	k := &rowKernels{f, v, constants{f, f.constants}}
	k.text("quantize"+v.suffix, 8, "func quantize"+v.suffix+"(c *quantizeCall)")
	k.op("MOVQ", "c+0(FP)", "BX")
	for _, p := range [][2]string{
		{"x", "SI"},
		{"q", "DI"},
		{"scale", "R8"},
		{"sum", "R9"},
		{"minus8", "R10"},
		{"minus16", "R14"},
		{"minus32", "R11"},
		{"bias", "R12"},
		{"blocks", "CX"},
	} {
		k.op("MOVQ", fmt.Sprintf("quantizeCall_%s(BX)", p[0]), p[1])
	}
	k.op("MOVQ", "quantizeCall_height(BX)", "R13")
	k.op("SHLQ", "$2", "R13")
	k.op("VMOVUPS", k.float("magnitude", 0x7fffffff), k.reg(14))
	k.op("VMOVSS", k.float("max127", math.Float32bits(127)), x(15))
	loop := k.label("block")
	k.place(loop)
	zero, next := k.label("zero"), k.label("next")
	parts := 1024 / v.bits
	k.amax(parts)
	k.op("VMOVD", x(8), "AX")
	k.op("SUBL", imm(0x0d800000), "AX") // 2^-100
	k.op("CMPL", "AX", imm(0x7f800000-0x0d800000))
	k.op("JHS", zero)
	k.op("VDIVSS", x(8), x(15), x(9)) // 127 / amax
	k.op("VDIVSS", x(15), x(8), x(10))
	k.op("VMOVSS", x(10), "(R8)")
	k.bytes32(parts)
	k.sums()
	k.place(next)
	k.op("ADDQ", "$128", "SI")
	k.op("LEAQ", "(DI)(R13*8)", "DI")
	for _, p := range []string{"R8", "R9", "R10", "R12", "R14"} {
		k.op("ADDQ", "R13", p)
	}
	k.op("LEAQ", "(R11)(R13*2)", "R11")
	k.op("DECQ", "CX")
	k.op("JNZ", loop)
	k.ret()

	k.place(zero)
	k.note("amax is below 2^-100: zeros; or infinite or NaN: zeros with the scale NaN.")
	k.op("VPXOR", x(0), x(0), x(0))
	k.op("VMOVDQU", x(0), "(DI)")
	k.op("VMOVDQU", x(0), "16(DI)")
	k.op("MOVQ", "$0", "(R11)")
	k.op("MOVL", "$0", "(R10)")
	k.op("MOVL", "$0", "(R12)")
	k.op("MOVL", "$0", "(R14)")
	number := k.label("number")
	k.op("ADDL", imm(0x0d800000), "AX")
	k.op("CMPL", "AX", imm(0x7f800000))
	k.op("MOVL", "$0", "AX")
	k.op("JLO", number)
	k.op("MOVL", "$0x7fc00000", "AX")
	k.place(number)
	k.op("MOVL", "AX", "(R8)")
	k.op("MOVL", "AX", "(R9)")
	k.op("JMP", next)
	return f.finish()
}

// amax emits the loading of the block into registers 0 to parts-1 and its greatest magnitude into X8.
func (k *rowKernels) amax(parts int) {
	r := k.reg
	and := "VPAND"
	if k.bits == 512 {
		and = "VPANDD"
	}
	for i := range parts {
		k.op("VMOVUPS", mem(i*k.vector.bytes(), "SI"), r(i))
		k.op(and, r(14), r(i), r(4+i))
	}
	for step := parts / 2; step > 0; step /= 2 {
		for i := range step {
			k.op("VPMAXUD", r(4+i+step), r(4+i), r(4+i))
		}
	}
	if k.bits == 512 {
		k.op("VEXTRACTI64X4", "$1", z(4), y(5))
		k.op("VPMAXUD", y(5), y(4), y(4))
	}
	k.op("VEXTRACTI128", "$1", y(4), x(5))
	k.op("VPMAXUD", x(5), x(4), x(4))
	k.op("VPSHUFD", "$0x4e", x(4), x(5))
	k.op("VPMAXUD", x(5), x(4), x(4))
	k.op("VPSHUFD", "$0xb1", x(4), x(5))
	k.op("VPMAXUD", x(5), x(4), x(8))
}

// bytes32 emits the rounding of the block to bytes, which go to (DI) and Y0.
func (k *rowKernels) bytes32(parts int) {
	r := k.reg
	k.op("VBROADCASTSS", x(9), r(9))
	for i := range parts {
		k.op("VMULPS", r(9), r(i), r(i))
		k.op("VCVTPS2DQ", r(i), r(i))
	}
	if k.bits == 512 {
		k.op("VPMOVSDB", z(0), "(DI)")
		k.op("VPMOVSDB", z(1), "16(DI)")
		k.op("VPMOVSDB", z(0), x(0))
		k.op("VPMOVSDB", z(1), x(1))
		k.op("VINSERTI128", "$1", x(1), y(0), y(0))
		return
	}
	// Packing works within 128-bit halves: of columns in groups of four, 0 2 4 6 and 1 3 5 7.
	k.op("VPACKSSDW", y(1), y(0), y(0))
	k.op("VPACKSSDW", y(3), y(2), y(2))
	k.op("VPACKSSWB", y(2), y(0), y(0))
	k.op("VMOVDQU", k.order(), y(1))
	k.op("VPERMD", y(0), y(1), y(0))
	k.op("VMOVDQU", y(0), "(DI)")
}

// order returns the operand that puts packed groups back in order.
func (k *rowKernels) order() string {
	if !k.names["order"] {
		k.names["order"] = true
		for i, pair := range [][2]uint64{{0, 4}, {1, 5}, {2, 6}, {3, 7}} {
			fmt.Fprintf(&k.data, "DATA c_order<>+%d(SB)/8, $%#016x\n", 8*i, pair[1]<<32|pair[0])
		}
		k.data.WriteString("GLOBL c_order<>(SB), RODATA|NOPTR, $32\n")
	}
	return "c_order<>(SB)"
}

// sums emits the sums of the bytes in Y0.
func (k *rowKernels) sums() {
	k.op("VMOVDQU", k.float("oneBytes", 0x01010101), y(2))
	k.op("VMOVDQU", k.float("oneWords", 0x00010001), y(3))
	k.op("VPMADDUBSW", y(0), y(2), y(1))
	k.op("VPMADDWD", y(3), y(1), y(1))
	k.op("VPHADDD", y(1), y(1), y(1))
	k.op("VPHADDD", y(1), y(1), y(1))
	k.op("VMOVD", x(1), "AX")
	k.op("VEXTRACTI128", "$1", y(1), x(2))
	k.op("VMOVD", x(2), "DX")
	k.op("LEAL", "(AX)(DX*1)", "R15")
	k.op("VXORPS", x(4), x(4), x(4))
	k.op("VCVTSI2SSL", "R15", x(4), x(4))
	k.op("VMULSS", x(10), x(4), x(4))
	k.op("VMOVSS", x(4), "(R9)")
	k.op("NEGL", "AX")
	k.op("NEGL", "DX")
	k.op("NEGL", "R15")
	k.op("SHLL", "$5", "AX")
	k.op("SHLL", "$5", "DX")
	k.op("MOVL", "AX", "(R11)")
	k.op("MOVL", "DX", "4(R11)")
	k.op("SHLL", "$3", "R15")
	k.op("MOVL", "R15", "(R10)")
	k.op("SHLL", "$1", "R15")
	k.op("MOVL", "R15", "(R14)")
	k.op("SHLL", "$3", "R15")
	k.op("MOVL", "R15", "(R12)")
}
