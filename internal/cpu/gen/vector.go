package main

import (
	"fmt"
	"strings"
)

// vector is a width of vectors. The elementwise kernels are the same instructions at each width, apart from rounding
// and masks.
type vector struct {
	suffix    string // of the functions
	bits      int
	registers int
}

var (
	avx512 = vector{"AVX512", 512, 32}
	avx2   = vector{"AVX2", 256, 16}
)

func (v vector) reg(n int) string {
	if v.bits == 512 {
		return z(n)
	}
	return y(n)
}

func (v vector) bytes() int { return v.bits / 8 }

func (v vector) zero(f *file, r string) {
	if v.bits == 512 {
		f.op("VPXORD", r, r, r)
	} else {
		f.op("VXORPS", r, r, r)
	}
}

// round emits rounding to the nearest integer, ties to even.
func (v vector) round(f *file, src, dst string) {
	if v.bits == 512 {
		f.op("VRNDSCALEPS", "$8", src, dst)
	} else {
		f.op("VROUNDPS", "$8", src, dst)
	}
}

// constants are the float constants of the kernels, by name; each is stored 16 times, so that it is an operand of any
// width.
type constants struct {
	f     *file
	names map[string]bool
}

// float returns the operand of a constant of package cpu's exp.go, given by its bits.
func (c *constants) float(name string, bits uint32) string {
	symbol := "c_" + name + "<>"
	if !c.names[name] {
		c.names[name] = true
		var b strings.Builder
		for i := 0; i < 64; i += 8 {
			fmt.Fprintf(&b, "DATA %s+%d(SB)/8, $%#016x\n", symbol, i, uint64(bits)<<32|uint64(bits))
		}
		fmt.Fprintf(&b, "GLOBL %s(SB), RODATA|NOPTR, $64\n", symbol)
		c.f.data.WriteString(b.String())
	}
	return symbol + "(SB)"
}
