package main

import (
	"fmt"
	"strings"
)

// The assembler of Go 1.26 does not know the tile instructions of AMX, so they are written as bytes: VEX.128.0F38.W0
// with these opcodes (Intel's Software Developer's Manual, volume 2, chapter "Intel AMX Instruction Set Reference").
// TestTileInstructions compares them with a disassembler's reading.
const (
	vexNone, vex66, vexF3, vexF2 = 0, 1, 2, 3 // the prefixes that VEX stands for

	opConfig = 0x49 // LDTILECFG: none, memory; TILERELEASE: none, C0; TILEZERO: F2
	opTile   = 0x4b // TILELOADD: F2; TILESTORED: F3
	opDot    = 0x5e // TDPBSUD: F3
)

// rowsAt is memory that a tile is loaded from or stored to: row r lies at base + offset + r·stride·scale, stride being a
// register.
type rowsAt struct {
	base   string
	offset int
	stride string
	scale  int // 1, 2, 4 or 8
}

// registerNumber returns the number by which instructions name a register of 64 bits.
func registerNumber(name string) int {
	for i, n := range []string{"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI"} {
		if n == name {
			return i
		}
	}
	var n int
	if _, err := fmt.Sscanf(name, "R%d", &n); err != nil || n < 8 || n > 15 {
		panic("gen: no register " + name)
	}
	return n
}

// bytes emits the bytes of an instruction, with its name as a comment.
func (f *file) bytes(comment string, code []byte) {
	var b strings.Builder
	for i, c := range code {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "BYTE $0x%02x", c)
	}
	fmt.Fprintf(f, "\t%s // %s\n", b.String(), comment)
}

// vex returns the first four bytes of an instruction. r, x and b are the fourth bits of register numbers.
func vex(prefix, opcode byte, r, x, b, vvvv int) []byte {
	return []byte{0xc4, byte(^r&1<<7 | ^x&1<<6 | ^b&1<<5 | 2), byte(^vvvv&15<<3) | prefix, opcode}
}

// memoryCode returns an instruction with a memory operand and a SIB byte. reg is a tile, or 0.
func memoryCode(prefix, opcode byte, reg int, m rowsAt) []byte {
	base, index, scale := registerNumber(m.base), 4, 0 // 4 is no index
	if m.stride != "" {
		index = registerNumber(m.stride)
		for 1<<scale < m.scale {
			scale++
		}
	}
	code := vex(prefix, opcode, 0, index>>3, base>>3, 0)
	sib := byte(scale<<6 | index&7<<3 | base&7)
	switch {
	case m.offset == 0 && base&7 != 5:
		return append(code, byte(reg<<3|4), sib)
	case m.offset >= -128 && m.offset < 128:
		return append(code, byte(1<<6|reg<<3|4), sib, byte(m.offset))
	}
	o := uint32(m.offset)
	return append(code, byte(2<<6|reg<<3|4), sib, byte(o), byte(o>>8), byte(o>>16), byte(o>>24))
}

func (m rowsAt) String() string {
	return fmt.Sprintf("%d(%s)(%s*%d)", m.offset, m.base, m.stride, m.scale)
}

// tileConfig emits LDTILECFG.
func (f *file) tileConfig(base string, offset int) {
	f.bytes("LDTILECFG "+mem(offset, base), memoryCode(vexNone, opConfig, 0, rowsAt{base: base, offset: offset}))
}

// tileRelease emits TILERELEASE.
func (f *file) tileRelease() {
	f.bytes("TILERELEASE", append(vex(vexNone, opConfig, 0, 0, 0, 0), 0xc0))
}

// tileZero emits TILEZERO.
func (f *file) tileZero(tile int) {
	f.bytes(fmt.Sprintf("TILEZERO T%d", tile), append(vex(vexF2, opConfig, 0, 0, 0, 0), byte(0xc0|tile<<3)))
}

// tileLoad emits TILELOADD.
func (f *file) tileLoad(from rowsAt, tile int) {
	f.bytes(fmt.Sprintf("TILELOADD %v, T%d", from, tile), memoryCode(vexF2, opTile, tile, from))
}

// tileStore emits TILESTORED.
func (f *file) tileStore(tile int, to rowsAt) {
	f.bytes(fmt.Sprintf("TILESTORED T%d, %v", tile, to), memoryCode(vexF3, opTile, tile, to))
}

// tileDot emits TDPBSUD: c += a·b, a's bytes being signed and b's not.
func (f *file) tileDot(a, b, c int) {
	f.bytes(fmt.Sprintf("TDPBSUD T%d, T%d, T%d", b, a, c), append(vex(vexF3, opDot, 0, 0, 0, b), byte(0xc0|c<<3|a)))
}
