package main

import (
	"fmt"
	"math"
)

// The constants of exp32 and its kin: the same numbers as in package cpu's exp.go, which the tests hold equal by
// comparing the kernels' results.
var expConstants = map[string]float32{
	"expMin":    -87,
	"expMax":    88,
	"log2E":     1.44269504088896341,
	"ln2High":   0.693359375,
	"ln2Low":    -2.12194440e-4,
	"expC6":     1.9875691500e-4,
	"expC5":     1.3981999507e-3,
	"expC4":     8.3334519073e-3,
	"expC3":     4.1665795894e-2,
	"expC2":     1.6666665459e-1,
	"expC1":     5.0000001201e-1,
	"geluCubic": 0.044715 * 1.5957691216057308,
	"geluSlope": 1.5957691216057308,
	"one":       1,
	"two":       2,
	"halfMax":   65504,
	"halfMin":   -65504,
}

const signBit = 0x80000000

// rowKernels emits elementwise kernels: loops over n values, n a multiple of the vector's lanes.
type rowKernels struct {
	*file
	vector
	constants
}

func (k *rowKernels) constant(name string) string {
	return k.float(name, math.Float32bits(expConstants[name]))
}

// exp emits dst = e^src as exp32 of package cpu does it, in three temporary registers, 13 operations. src is kept.
func (k *rowKernels) exp(src, dst, t0, t1 string) {
	k.op("VMOVUPS", k.constant("expMax"), t0)
	k.op("VMINPS", src, t0, t0) // a NaN in src stays
	k.op("VMULPS", k.constant("log2E"), t0, t1)
	k.round(k.file, t1, t1)
	k.op("VFNMADD231PS", k.constant("ln2High"), t1, t0)
	k.op("VFNMADD231PS", k.constant("ln2Low"), t1, t0)
	k.op("VCVTPS2DQ", t1, t1)
	k.op("VPSLLD", "$23", t1, t1)
	k.op("VMOVUPS", k.constant("expC6"), dst)
	for _, c := range []string{"expC5", "expC4", "expC3", "expC2", "expC1", "one", "one"} {
		k.op("VFMADD213PS", k.constant(c), t0, dst)
	}
	k.op("VPADDD", t1, dst, dst)
	const notLess = "$5"
	if k.bits == 512 {
		k.op("VCMPPS", notLess, k.constant("expMin"), src, "K1")
		k.op("VMOVAPS.Z", dst, "K1", dst)
	} else {
		k.op("VCMPPS", notLess, k.constant("expMin"), src, t0)
		k.op("VANDPS", t0, dst, dst)
	}
}

// loop emits a function over n values; pointers are the argument names of the arrays, which are advanced, and body
// emits the work on one vector.
func (k *rowKernels) loop(name string, arrays []string, scalars []string, doc string, body func(p map[string]string, s map[string]string)) {
	args := 8*len(arrays) + 8 + 4*len(scalars)
	k.text(name+k.suffix, args, name+k.suffix+": "+doc)
	pointers, values := map[string]string{}, map[string]string{}
	for i, a := range arrays {
		pointers[a] = []string{"DI", "SI", "DX", "R8", "R9", "R10"}[i]
		k.op("MOVQ", fmt.Sprintf("%s+%d(FP)", a, 8*i), pointers[a])
	}
	k.op("MOVQ", fmt.Sprintf("n+%d(FP)", 8*len(arrays)), "CX")
	for i, a := range scalars {
		values[a] = k.reg(k.registers - 1 - i)
		k.op("VBROADCASTSS", fmt.Sprintf("%s+%d(FP)", a, 8*len(arrays)+8+4*i), values[a])
	}
	again := k.label(name)
	k.place(again)
	body(pointers, values)
	for _, a := range arrays {
		k.op("ADDQ", imm(k.vector.bytes()), pointers[a])
	}
	k.op("SUBQ", imm(k.bits/32), "CX")
	k.op("JNZ", again)
	k.ret()
}

// rows writes the elementwise kernels.
func rows(v vector) []byte {
	f := newFile("Elementwise kernels: norms, gated activations, rotary embedding, conversions.")
	k := &rowKernels{f, v, constants{f, f.constants}}
	k.simple()
	k.gated()
	k.rotations()
	k.sumSquares()
	return f.finish()
}

func (k *rowKernels) simple() {
	r := k.reg
	k.loop("add", []string{"dst", "x"}, nil, "dst += x", func(p, _ map[string]string) {
		k.op("VMOVUPS", mem(0, p["dst"]), r(0))
		k.op("VADDPS", mem(0, p["x"]), r(0), r(0))
		k.op("VMOVUPS", r(0), mem(0, p["dst"]))
	})
	k.loop("scale", []string{"x"}, []string{"factor"}, "x *= factor", func(p, s map[string]string) {
		k.op("VMULPS", mem(0, p["x"]), s["factor"], r(0))
		k.op("VMOVUPS", r(0), mem(0, p["x"]))
	})
	k.loop("divide", []string{"dst", "x"}, []string{"divisor"}, "dst = x / divisor", func(p, s map[string]string) {
		k.op("VMOVUPS", mem(0, p["x"]), r(0))
		k.op("VDIVPS", s["divisor"], r(0), r(0))
		k.op("VMOVUPS", r(0), mem(0, p["dst"]))
	})
	k.loop("mix", []string{"dst", "x"}, []string{"a", "b"}, "dst = fma(x, b, dst·a)", func(p, s map[string]string) {
		k.op("VMULPS", mem(0, p["dst"]), s["a"], r(0))
		k.op("VFMADD231PS", mem(0, p["x"]), s["b"], r(0))
		k.op("VMOVUPS", r(0), mem(0, p["dst"]))
	})
	k.loop("weigh", []string{"dst", "x", "weight"}, []string{"factor"}, "dst = (x · factor) · weight", func(p, s map[string]string) {
		k.op("VMULPS", mem(0, p["x"]), s["factor"], r(0))
		k.op("VMULPS", mem(0, p["weight"]), r(0), r(0))
		k.op("VMOVUPS", r(0), mem(0, p["dst"]))
	})
	k.loop("softcap", []string{"x"}, []string{"limit"}, "x = limit·tanh(x / limit)", func(p, s map[string]string) {
		k.op("VMOVUPS", mem(0, p["x"]), r(0))
		k.capped(r(0), s["limit"], r(1), r(2), r(3))
		k.op("VMOVUPS", r(0), mem(0, p["x"]))
	})
	k.halves()
	k.merge()
}

// merge emits the merging of greatest scores and sums of two parts of the context (docs/arithmetic.md §8).
func (k *rowKernels) merge() {
	r := k.reg
	k.loop("merge", []string{"a", "b", "top", "sum", "partTop", "partSum"}, nil, "of parts of the context", func(p, _ map[string]string) {
		k.op("VMOVUPS", mem(0, p["top"]), r(0))
		k.op("VMOVUPS", mem(0, p["partTop"]), r(1))
		k.op("VMAXPS", r(0), r(1), r(2))
		k.op("VMOVUPS", r(2), mem(0, p["top"]))
		k.op("VSUBPS", r(2), r(0), r(0))
		k.op("VSUBPS", r(2), r(1), r(1))
		k.exp(r(0), r(3), r(5), r(6))
		k.exp(r(1), r(4), r(5), r(6))
		k.op("VMOVUPS", r(3), mem(0, p["a"]))
		k.op("VMOVUPS", r(4), mem(0, p["b"]))
		k.op("VMULPS", mem(0, p["sum"]), r(3), r(3))
		k.op("VFMADD231PS", mem(0, p["partSum"]), r(4), r(3))
		k.op("VMOVUPS", r(3), mem(0, p["sum"]))
	})
}

// capped emits x = limit·tanh(x / limit).
func (k *rowKernels) capped(x, limit, t0, t1, t2 string) {
	k.op("VDIVPS", limit, x, x)
	k.op("VADDPS", x, x, x)
	k.exp(x, t0, t1, t2)
	k.op("VADDPS", k.constant("one"), t0, t0)
	k.op("VMOVUPS", k.constant("two"), t1)
	k.op("VDIVPS", t0, t1, t1)
	k.op("VMOVUPS", k.constant("one"), t0)
	k.op("VSUBPS", t1, t0, t0)
	k.op("VMULPS", limit, t0, x)
}

// halves emits the conversion to half precision, to nearest even, within ±65504.
func (k *rowKernels) halves() {
	k.text("halves"+k.suffix, 24, "func halvesAVX(dst *uint16, x *float32, n int)")
	k.op("MOVQ", "dst+0(FP)", "DI")
	k.op("MOVQ", "x+8(FP)", "SI")
	k.op("MOVQ", "n+16(FP)", "CX")
	r := k.reg
	k.op("VMOVUPS", k.constant("halfMax"), r(1))
	k.op("VMOVUPS", k.constant("halfMin"), r(2))
	again := k.label("halves")
	k.place(again)
	k.op("VMOVUPS", "(SI)", r(0))
	k.op("VMAXPS", r(0), r(2), r(0)) // a NaN stays
	k.op("VMINPS", r(0), r(1), r(0))
	k.op("VCVTPS2PH", "$0", r(0), "(DI)")
	k.op("ADDQ", imm(k.vector.bytes()), "SI")
	k.op("ADDQ", imm(k.vector.bytes()/2), "DI")
	k.op("SUBQ", imm(k.bits/32), "CX")
	k.op("JNZ", again)
	k.ret()
}

// gated emits silu(gate)·up and gelu(gate)·up.
func (k *rowKernels) gated() {
	r := k.reg
	arrays := []string{"dst", "gate", "up"}
	sign := k.float("sign", signBit)
	finish := func(p map[string]string) { // r(0) is the gate, r(1) the argument of the exponential
		k.exp(r(1), r(2), r(3), r(4))
		k.op("VADDPS", k.constant("one"), r(2), r(2))
		k.op("VDIVPS", r(2), r(0), r(0))
		k.op("VMULPS", mem(0, p["up"]), r(0), r(0))
		k.op("VMOVUPS", r(0), mem(0, p["dst"]))
	}
	k.loop("silu", arrays, nil, "dst = silu(gate) · up", func(p, _ map[string]string) {
		k.op("VMOVUPS", mem(0, p["gate"]), r(0))
		k.op("VXORPS", sign, r(0), r(1))
		finish(p)
	})
	k.loop("gelu", arrays, nil, "dst = gelu(gate) · up", func(p, _ map[string]string) {
		k.op("VMOVUPS", mem(0, p["gate"]), r(0))
		k.op("VMULPS", r(0), r(0), r(1))
		k.op("VMOVUPS", k.constant("geluCubic"), r(2))
		k.op("VFMADD213PS", k.constant("geluSlope"), r(2), r(1))
		k.op("VMULPS", r(1), r(0), r(1))
		k.op("VXORPS", sign, r(1), r(1))
		finish(p)
	})
}

// rotations emits the rotary embedding (docs/arithmetic.md §7): x = fma(x, cos, partner · sin), where sin has the sign
// of the formula.
func (k *rowKernels) rotations() {
	r := k.reg
	k.loop("rotatePairs", []string{"x", "cos", "sin"}, nil, "partners are neighbours", func(p, _ map[string]string) {
		k.op("VMOVUPS", mem(0, p["x"]), r(0))
		k.op("VPERMILPS", "$0xb1", r(0), r(1))
		k.op("VMULPS", mem(0, p["sin"]), r(1), r(1))
		k.op("VFMADD231PS", mem(0, p["cos"]), r(0), r(1))
		k.op("VMOVUPS", r(1), mem(0, p["x"]))
	})
	k.loop("rotateHalves", []string{"low", "high", "cos", "sin"}, nil, "partners are half the head apart; cos and sin of the high half",
		func(p, _ map[string]string) {
			k.op("VMOVUPS", mem(0, p["low"]), r(0))
			k.op("VMOVUPS", mem(0, p["high"]), r(1))
			k.op("VMOVUPS", mem(0, p["sin"]), r(2))
			k.op("VMOVUPS", mem(0, p["cos"]), r(3))
			k.op("VMULPS", r(1), r(2), r(4))
			k.op("VMULPS", r(0), r(2), r(5))
			k.op("VFMSUB231PS", r(0), r(3), r(4))
			k.op("VFMADD231PS", r(1), r(3), r(5))
			k.op("VMOVUPS", r(4), mem(0, p["low"]))
			k.op("VMOVUPS", r(5), mem(0, p["high"]))
		})
}

// sumSquares emits the sums of squares in 16 lanes.
func (k *rowKernels) sumSquares() {
	k.text("sumSquares"+k.suffix, 24, "func sumSquaresAVX(sums *[16]float32, x *float32, n int)")
	k.op("MOVQ", "sums+0(FP)", "DI")
	k.op("MOVQ", "x+8(FP)", "SI")
	k.op("MOVQ", "n+16(FP)", "CX")
	parts := 512 / k.bits
	for i := range parts {
		k.zero(k.file, k.reg(i))
	}
	again := k.label("sumSquares")
	k.place(again)
	for i := range parts {
		k.op("VMOVUPS", mem(i*k.vector.bytes(), "SI"), k.reg(parts+i))
		k.op("VFMADD231PS", k.reg(parts+i), k.reg(parts+i), k.reg(i))
	}
	k.op("ADDQ", "$64", "SI")
	k.op("SUBQ", "$16", "CX")
	k.op("JNZ", again)
	for i := range parts {
		k.op("VMOVUPS", k.reg(i), mem(i*k.vector.bytes(), "DI"))
	}
	k.ret()
}
