package main

import (
	"fmt"
	"strings"

	"github.com/quire-ai/quire/internal/tensor"
)

// load512 emits the loading of the codes, once in each 16 bytes of a register, which is how VPSHUFB looks them up.
func (c codes) load512(f *file) {
	if c.offset > 0 {
		f.op("VMOVDQU64", c.table(f), z(zCodes))
	}
}

// load256 is load512 for 256 bits.
func (c codes) load256(f *file) {
	if c.offset > 0 {
		f.op("VMOVDQU", c.table(f), y(yCodes))
	}
}

// lookup512 emits the replacement of the nibbles in Z0–Z7 by their codes: 8 operations a block.
func (c codes) lookup512(f *file) {
	if c.offset > 0 {
		for g := range 8 {
			f.op("VPSHUFB", z(g), z(zCodes), z(g))
		}
	}
}

// lookup256 emits the replacement of the nibbles in w.
func (c codes) lookup256(f *file, w string) {
	if c.offset > 0 {
		f.op("VPSHUFB", w, y(yCodes), w)
	}
}

// table returns the operand of the codes, four times.
func (c codes) table(f *file) string {
	symbol := "codes_" + c.format.String() + "<>"
	if f.constants[symbol] {
		return symbol + "(SB)"
	}
	f.constants[symbol] = true
	book, _ := tensor.Codebook(c.format)
	var b strings.Builder
	for i := 0; i < 64; i += 8 {
		fmt.Fprintf(&b, "DATA %s+%d(SB)/8, $0x", symbol, i)
		for k := 7; k >= 0; k-- {
			fmt.Fprintf(&b, "%02x", int(book[i%16+k])+c.offset)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "GLOBL %s(SB), RODATA|NOPTR, $64\n", symbol)
	f.data.WriteString(b.String())
	return symbol + "(SB)"
}
