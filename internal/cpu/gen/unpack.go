package main

import (
	"fmt"

	"github.com/quire-ai/quire/internal/tensor"
)

// numbers512 emits the loading of a block's numbers from (SI) into Z0–Z7, one group each. For fewer than 8 bits, Z14 and
// Z15 are used beside and operand mask holds 0x0f bytes; 4 bits cost 12 operations, 5 and 6 bits 27 and 26.
func numbers512(f *file, bits int, mask string) {
	if bits == 8 {
		for g := range 8 {
			f.op("VMOVDQU64", mem(64*g, "SI"), z(g))
		}
		return
	}
	for g := range 4 {
		f.op("VMOVDQU64", mem(64*g, "SI"), z(g))
		f.op("VPSRLW", "$4", z(g), z(g+4))
		f.op("VPANDD", mask, z(g+4), z(g+4))
		f.op("VPANDD", mask, z(g), z(g))
	}
	high := bits - 4
	if high == 0 {
		return
	}
	for g := range 8 {
		if g%(8/high) == 0 {
			f.op("VMOVDQU64", mem(256+64*(g*high/8), "SI"), z(14))
		}
		t := z(15)
		switch shift := 4 - g%(8/high)*high; { // to bit 4
		case shift > 0:
			f.op("VPSLLW", imm(shift), z(14), t)
		case shift < 0:
			f.op("VPSRLW", imm(-shift), z(14), t)
		default:
			t = z(14)
		}
		const orAnd = "$0xf8" // a | b & c
		f.op("VPTERNLOGD.BCST", orAnd, highMask(f, high), t, z(g))
	}
}

// highMask is the operand that selects bits 4 (and 5) of each byte.
func highMask(f *file, bits int) string {
	c := constants{f, f.constants}
	if bits == 1 {
		return c.float("bit4", 0x10101010)
	}
	return c.float("bits45", 0x30303030)
}

// unpack writes the unpacking of a panel's numbers into bytes.
func unpack(v vector) []byte {
	f := newFile("Unpacking of weights of 4 to 6 bits into bytes.")
	for _, u := range []struct {
		name  string
		bits  int
		codes codes
	}{{"4", 4, codes{}}, {"5", 5, codes{}}, {"6", 6, codes{}}, {"N4", 4, codes{tensor.IQ4_NL, 128}}} {
		name := "unpack" + u.name + v.suffix
		f.text(name, 8, fmt.Sprintf("%s unpacks c.blocks blocks.\nfunc %s(c *unpackCall)", name, name))
		f.op("MOVQ", "c+0(FP)", "BX")
		f.op("MOVQ", "unpackCall_dst(BX)", "DI")
		f.op("MOVQ", "unpackCall_numbers(BX)", "SI")
		f.op("MOVQ", "unpackCall_blocks(BX)", "CX")
		loop := f.label("block")
		if v.bits == 512 {
			f.op("MOVL", "$0x0f0f0f0f", "AX")
			f.op("VPBROADCASTD", "AX", z(12))
			u.codes.load512(f)
		} else {
			u.codes.load256(f)
		}
		f.place(loop)
		if v.bits == 512 {
			numbers512(f, u.bits, z(12))
			u.codes.lookup512(f)
			for g := range 8 {
				f.op("VMOVDQU64", z(g), mem(64*g, "DI"))
			}
		} else {
			for g := range 8 {
				for half := range 2 {
					group256(f, u.bits, g, half, y(0), y(1))
					u.codes.lookup256(f, y(0))
					f.op("VMOVDQU", y(0), mem(64*g+32*half, "DI"))
				}
			}
		}
		f.op("ADDQ", imm(64*u.bits), "SI")
		f.op("ADDQ", "$512", "DI")
		f.op("DECQ", "CX")
		f.op("JNZ", loop)
		f.ret()
	}
	return f.finish()
}

// group256 emits the loading of half of group g of the block at (SI) into w; t is used beside.
func group256(f *file, bits, g, half int, w, t string) {
	if bits == 8 {
		f.op("VMOVDQU", mem(64*g+32*half, "SI"), w)
		return
	}
	c := constants{f, f.constants}
	f.op("VMOVDQU", mem(64*(g%4)+32*half, "SI"), w)
	if g >= 4 {
		f.op("VPSRLW", "$4", w, w)
	}
	f.op("VPAND", c.float("lowNibbles", 0x0f0f0f0f), w, w)
	high := bits - 4
	if high == 0 {
		return
	}
	f.op("VMOVDQU", mem(256+64*(g*high/8)+32*half, "SI"), t)
	switch shift := 4 - g%(8/high)*high; {
	case shift > 0:
		f.op("VPSLLW", imm(shift), t, t)
	case shift < 0:
		f.op("VPSRLW", imm(-shift), t, t)
	}
	f.op("VPAND", highMask(f, high), t, t)
	f.op("VPOR", t, w, w)
}
