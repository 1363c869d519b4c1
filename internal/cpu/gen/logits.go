package main

import "fmt"

// logits writes the kernels of sampling: a pass over a row of logits that finds the greatest, 4 operations a vector, and
// one that turns them into weights, 18 operations a vector of which 13 are the exponential.
func logits(v vector) []byte {
	f := newFile("Sampling: the greatest logit, and the weights of logits.")
	k := &rowKernels{f, v, constants{f, f.constants}}
	k.greatest()
	k.weights()
	return f.finish()
}

// lastReg is a register counted from the end, of what holds for all vectors.
func (k *rowKernels) lastReg(n int) string { return k.reg(k.registers - n) }

// greatest emits the greatest of n values, or NaN if one is not finite: x - x is 0 or NaN, and so are all their sums.
func (k *rowKernels) greatest() {
	const top, odd, value, other = 0, 1, 2, 3
	r := k.reg
	k.text("greatest"+k.suffix, 24, "greatest"+k.suffix+": *top = greatest of x, or NaN\nfunc greatestAVX(top, x *float32, n int)")
	k.op("MOVQ", "top+0(FP)", "DI")
	k.op("MOVQ", "x+8(FP)", "SI")
	k.op("MOVQ", "n+16(FP)", "CX")
	k.op("VMOVUPS", k.float("minusInfinity", 0xff800000), r(top))
	k.zero(k.file, r(odd))
	again := k.label("greatest")
	k.place(again)
	k.op("VMOVUPS", "(SI)", r(value))
	k.op("VMAXPS", r(value), r(top), r(top))
	k.op("VSUBPS", r(value), r(value), r(other))
	k.op("VADDPS", r(other), r(odd), r(odd))
	k.op("ADDQ", imm(k.vector.bytes()), "SI")
	k.op("SUBQ", imm(k.bits/32), "CX")
	k.op("JNZ", again)
	half := func(op string, n int) {
		if k.bits == 512 {
			k.op("VEXTRACTF64X4", "$1", z(n), y(value))
			k.op(op, y(value), y(n), y(n))
		}
		k.op("VEXTRACTF128", "$1", y(n), x(value))
		k.op(op, x(value), x(n), x(n))
		for _, swap := range []string{"$0x4e", "$0xb1"} {
			k.op("VPERMILPS", swap, x(n), x(value))
			k.op(op, x(value), x(n), x(n))
		}
	}
	half("VMAXPS", top)
	half("VADDPS", odd)
	k.op("VADDPS", x(top), x(odd), x(odd))
	k.op("VMOVSS", x(odd), "(DI)")
	k.ret()
}

// weights emits dst = e^((x - top) · inverse) or, where x is less than least, 0, and the sums in 16 lanes.
func (k *rowKernels) weights() {
	const value, scaled, weight, t0, t1, sums = 0, 1, 2, 3, 4, 5 // and 6 with 256 bits
	r, parts := k.reg, 512/k.bits
	k.text("weights"+k.suffix, 44, "weights"+k.suffix+": dst = weights of x, sums = their sums\n"+
		"func weightsAVX(dst *float32, sums *[lanes]float32, x *float32, n int, top, inverse, least float32)")
	k.op("MOVQ", "dst+0(FP)", "DI")
	k.op("MOVQ", "sums+8(FP)", "DX")
	k.op("MOVQ", "x+16(FP)", "SI")
	k.op("MOVQ", "n+24(FP)", "CX")
	top, inverse, least := k.lastReg(1), k.lastReg(2), k.lastReg(3)
	k.op("VBROADCASTSS", "top+32(FP)", top)
	k.op("VBROADCASTSS", "inverse+36(FP)", inverse)
	k.op("VBROADCASTSS", "least+40(FP)", least)
	for i := range parts {
		k.zero(k.file, r(sums+i))
	}
	const notBelow = "$13"
	again := k.label("weights")
	k.place(again)
	for i := range parts {
		at := i * k.vector.bytes()
		k.op("VMOVUPS", mem(at, "SI"), r(value))
		k.op("VSUBPS", top, r(value), r(scaled))
		k.op("VMULPS", inverse, r(scaled), r(scaled))
		k.exp(r(scaled), r(weight), r(t0), r(t1))
		if k.bits == 512 {
			k.op("VCMPPS", notBelow, least, r(value), "K2")
			k.op("VMOVAPS.Z", r(weight), "K2", r(weight))
		} else {
			k.op("VCMPPS", notBelow, least, r(value), r(t0))
			k.op("VANDPS", r(t0), r(weight), r(weight))
		}
		k.op("VMOVUPS", r(weight), mem(at, "DI"))
		k.op("VADDPS", r(weight), r(sums+i), r(sums+i))
	}
	k.op("ADDQ", "$64", "SI")
	k.op("ADDQ", "$64", "DI")
	k.op("SUBQ", "$16", "CX")
	k.op("JNZ", again)
	for i := range parts {
		k.op("VMOVUPS", r(sums+i), fmt.Sprintf("%d(DX)", i*k.vector.bytes()))
	}
	k.ret()
}
