package tile

import (
	"encoding/binary"
	"fmt"
)

// Op is a tile instruction.
type Op uint8

// The tile instructions of AMX-TILE and AMX-INT8. Dot products are named for the signs of the first and second source.
const (
	LoadConfig Op = iota
	StoreConfig
	Release
	Zero
	Load
	Store
	DotSS
	DotSU
	DotUS
	DotUU
	OpCount
)

// opNames is indexed by Op; the names are Intel's.
var opNames = [OpCount]string{
	LoadConfig: "LDTILECFG", StoreConfig: "STTILECFG", Release: "TILERELEASE", Zero: "TILEZERO", Load: "TILELOADD",
	Store: "TILESTORED", DotSS: "TDPBSSD", DotSU: "TDPBSUD", DotUS: "TDPBUSD", DotUU: "TDPBUUD",
}

// String returns Intel's name.
func (o Op) String() string {
	if o >= OpCount {
		return fmt.Sprintf("tile instruction %d", uint8(o))
	}
	return opNames[o]
}

// None is no register, as base or index.
const None = -1

// Inst is a decoded instruction.
type Inst struct {
	Op    Op
	Bytes int // its length

	Dst, A, B int // tiles: the one loaded, stored, cleared or added to, and the sources of a dot product

	// The memory operand: base + index·scale + displacement. Registers have the numbers of the encoding, RAX 0 to R15.
	// In loads and stores of tiles, index·scale is the distance from one row to the next, and no part of the address.
	Base, Index, Scale int
	Displacement       int32
}

// MaxBytes is the length of the longest tile instruction.
const MaxBytes = 10

// Decode reads the instruction that code begins with. It is an error when that is no tile instruction, or not one in a
// legal form.
func Decode(code []byte) (Inst, error) {
	// VEX with three bytes, map 0F38, W0, 128 bits (Intel's Software Developer's Manual, volume 2, §2.3.5).
	if len(code) < 5 || code[0] != 0xc4 || code[1]&0x1f != 2 || code[2]&0x84 != 0 {
		return Inst{}, fmt.Errorf("% x: not a tile instruction", code[:min(len(code), MaxBytes)])
	}
	v := vex{
		r: int(^code[1]>>7&1) << 3, x: int(^code[1]>>6&1) << 3, b: int(^code[1]>>5&1) << 3,
		vvvv: int(^code[2] >> 3 & 15), prefix: code[2] & 3, opcode: code[3], modrm: code[4], rest: code[5:],
	}
	inst, err := v.decode()
	if err != nil {
		return Inst{}, fmt.Errorf("% x: %w", code[:min(len(code), MaxBytes)], err)
	}
	return inst, nil
}

// The prefixes that VEX stands for.
const (
	prefixNone = 0
	prefix66   = 1
	prefixF3   = 2
	prefixF2   = 3
)

// vex is an instruction cut into fields, what is stored inverted having been inverted.
type vex struct {
	r, x, b int // the fourth bits of registers, 0 or 8
	vvvv    int
	prefix  byte
	opcode  byte
	modrm   byte
	rest    []byte // what follows modrm
}

func (v vex) isMemory() bool { return v.modrm>>6 != 3 }

func (v vex) decode() (Inst, error) {
	reg, rm := int(v.modrm>>3&7), int(v.modrm&7)
	switch {
	case v.opcode == 0x5e && !v.isMemory():
		ops := [4]Op{prefixNone: DotUU, prefix66: DotUS, prefixF3: DotSU, prefixF2: DotSS}
		if v.r|v.b != 0 || v.vvvv > 7 {
			return Inst{}, fmt.Errorf("#UD: a tile above 7")
		}
		return Inst{Op: ops[v.prefix], Bytes: 5, Dst: reg, A: rm, B: v.vvvv, Base: None, Index: None}, nil
	case v.vvvv != 0:
		return Inst{}, fmt.Errorf("#UD: vvvv names a register that the instruction has not")
	case v.opcode == 0x49 && !v.isMemory() && v.prefix == prefixNone && v.modrm == 0xc0:
		return Inst{Op: Release, Bytes: 5, Base: None, Index: None}, nil
	case v.opcode == 0x49 && !v.isMemory() && v.prefix == prefixF2 && rm == 0 && v.r == 0:
		return Inst{Op: Zero, Bytes: 5, Dst: reg, Base: None, Index: None}, nil
	case v.opcode == 0x49 && v.isMemory() && reg == 0 && v.prefix == prefixNone:
		return v.memory(Inst{Op: LoadConfig})
	case v.opcode == 0x49 && v.isMemory() && reg == 0 && v.prefix == prefix66:
		return v.memory(Inst{Op: StoreConfig})
	case v.opcode == 0x4b && v.isMemory() && rm != 4:
		return Inst{}, fmt.Errorf("#UD: a tile in memory needs a SIB byte")
	case v.opcode == 0x4b && v.isMemory() && v.r != 0:
		return Inst{}, fmt.Errorf("#UD: a tile above 7")
	case v.opcode == 0x4b && v.isMemory() && (v.prefix == prefixF2 || v.prefix == prefix66):
		return v.memory(Inst{Op: Load, Dst: reg}) // 66 hints that the data is not used again
	case v.opcode == 0x4b && v.isMemory() && v.prefix == prefixF3:
		return v.memory(Inst{Op: Store, Dst: reg})
	}
	return Inst{}, fmt.Errorf("not a tile instruction")
}

// memory reads the memory operand.
func (v vex) memory(i Inst) (Inst, error) {
	mod, rm := v.modrm>>6, int(v.modrm&7)
	at := 0
	need := func(n int) error {
		if len(v.rest) < at+n {
			return fmt.Errorf("cut off")
		}
		return nil
	}
	i.Base, i.Index, i.Scale = rm|v.b, None, 1
	low := rm
	if rm == 4 {
		if err := need(1); err != nil {
			return Inst{}, err
		}
		sib := v.rest[0]
		at++
		low = int(sib & 7)
		i.Base, i.Scale = low|v.b, 1<<(sib>>6)
		if index := int(sib>>3&7) | v.x; index != 4 { // RSP cannot be an index
			i.Index = index
		}
	}
	size := [3]int{0, 1, 4}[mod]
	if mod == 0 && low == 5 {
		if rm != 4 {
			return Inst{}, fmt.Errorf("an address relative to RIP is not emulated")
		}
		i.Base, size = None, 4
	}
	if err := need(size); err != nil {
		return Inst{}, err
	}
	switch size {
	case 1:
		i.Displacement = int32(int8(v.rest[at]))
	case 4:
		i.Displacement = int32(binary.LittleEndian.Uint32(v.rest[at:]))
	}
	i.Bytes = 5 + at + size
	return i, nil
}
