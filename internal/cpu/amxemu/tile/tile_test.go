package tile

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecode has the instructions as GNU as 2.40 assembles them.
func TestDecode(t *testing.T) {
	memory := func(op Op, tile, base, index, scale int, displacement int32, bytes int) Inst {
		return Inst{Op: op, Bytes: bytes, Dst: tile, Base: base, Index: index, Scale: scale, Displacement: displacement}
	}
	tiles := func(op Op, dst, a, b int) Inst {
		return Inst{Op: op, Bytes: 5, Dst: dst, A: a, B: b, Base: None, Index: None}
	}
	for _, c := range []struct {
		code string
		want Inst
	}{
		{"c4e2784900", memory(LoadConfig, 0, 0, None, 1, 0, 5)},          // ldtilecfg (%rax)
		{"c4c278494640", memory(LoadConfig, 0, 14, None, 1, 0x40, 6)},    // ldtilecfg 0x40(%r14)
		{"c4e2794900", memory(StoreConfig, 0, 0, None, 1, 0, 5)},         // sttilecfg (%rax)
		{"c4e27849c0", tiles(Release, 0, 0, 0)},                          // tilerelease
		{"c4e27b49d8", tiles(Zero, 3, 0, 0)},                             // tilezero %tmm3
		{"c4a27b4b347e", memory(Load, 6, 6, 15, 2, 0, 6)},                // tileloadd (%rsi,%r15,2),%tmm6
		{"c4827b4bac3880000000", memory(Load, 5, 8, 15, 1, 0x80, 10)},    // tileloadd 0x80(%r8,%r15,1),%tmm5
		{"c482794bbc7d00100000", memory(Load, 7, 13, 15, 2, 0x1000, 10)}, // tileloaddt1 0x1000(%r13,%r15,2),%tmm7
		{"c4827a4b8c7e00040000", memory(Store, 1, 14, 15, 2, 0x400, 10)}, // tilestored %tmm1,0x400(%r14,%r15,2)
		{"c4e27b4b042500000000", memory(Load, 0, None, None, 1, 0, 10)},  // tileloadd 0x0,%tmm0
		{"c4e24b5ec4", tiles(DotSS, 0, 4, 6)},                            // tdpbssd %tmm6,%tmm4,%tmm0
		{"c4e2425ecd", tiles(DotSU, 1, 5, 7)},                            // tdpbsud %tmm7,%tmm5,%tmm1
		{"c4e2415ed4", tiles(DotUS, 2, 4, 7)},                            // tdpbusd %tmm7,%tmm4,%tmm2
		{"c4e2485edd", tiles(DotUU, 3, 5, 6)},                            // tdpbuud %tmm6,%tmm5,%tmm3
	} {
		code, err := hex.DecodeString(c.code)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(append(code, 0x90, 0x90))
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("Decode(%s): %v, -want +got\n%s", c.code, err, diff)
		}
		for n := range len(code) {
			if _, err := Decode(code[:n]); err == nil {
				t.Errorf("Decode(%x), the beginning of %s: no error", code[:n], c.code)
			}
		}
	}
	for _, code := range []string{
		"c5f877",     // vzeroupper
		"c4e2f84900", // W1
		"c4e27c4900", // 256 bits
		"c4e27b4b06", // tileloadd without SIB
		"c4e2704900", // vvvv
		"c4e2785cc0", // bf16
	} {
		b, err := hex.DecodeString(code)
		if err != nil {
			t.Fatal(err)
		}
		if i, err := Decode(append(b, 0, 0, 0, 0, 0)); err == nil {
			t.Errorf("Decode(%s) = %+v, want an error", code, i)
		}
	}
}

// slab is memory from address 0 on.
type slab []byte

func (s slab) Read(p []byte, address uint64) error {
	if address+uint64(len(p)) > uint64(len(s)) {
		return errors.New("#PF")
	}
	copy(p, s[address:])
	return nil
}

func (s slab) Write(p []byte, address uint64) error {
	if address+uint64(len(p)) > uint64(len(s)) {
		return errors.New("#PF")
	}
	copy(s[address:], p)
	return nil
}

// config returns a configuration of palette 1: tile 0 of m rows, 1 of m rows and 2 of k/4 rows, so that 0 = 1·2.
func config(m, n, k int) slab {
	b := make(slab, ConfigBytes)
	b[0] = 1
	for t, shape := range [][2]int{{m, 4 * n}, {m, k}, {k / 4, 4 * n}} {
		b[48+t] = byte(shape[0])
		binary.LittleEndian.PutUint16(b[16+2*t:], uint16(shape[1]))
	}
	return b
}

func run(t *testing.T, s *State, m Memory, i Inst, address, stride uint64) {
	t.Helper()
	if err := s.Execute(i, m, address, stride); err != nil {
		t.Fatalf("%v: %v", i.Op, err)
	}
}

// TestDotProducts compares with the product written as it is in books, for all signs and odd shapes.
func TestDotProducts(t *testing.T) {
	for _, shape := range [][3]int{{16, 16, 64}, {1, 1, 4}, {5, 16, 32}, {16, 3, 16}} {
		m, n, k := shape[0], shape[1], shape[2]
		memory := make(slab, 8192)
		for i := range memory[:4096] {
			memory[i] = byte(i*i*7 + i*13 + i>>5)
		}
		for _, op := range []Op{DotSS, DotSU, DotUS, DotUU} {
			var s State
			run(t, &s, config(m, n, k), Inst{Op: LoadConfig}, 0, 0)
			run(t, &s, memory, Inst{Op: Load, Dst: 1}, 0, 80)
			run(t, &s, memory, Inst{Op: Load, Dst: 2}, 2048, 64)
			run(t, &s, memory, Inst{Op: Zero}, 0, 0)
			run(t, &s, memory, Inst{Op: op, A: 1, B: 2}, 0, 0)
			run(t, &s, memory, Inst{Op: op, A: 1, B: 2}, 0, 0)
			run(t, &s, memory, Inst{Op: Store}, 4096, 128)
			for r := range m {
				for c := range n {
					want := int32(0)
					for i := range k {
						a, b := int32(memory[80*r+i]), int32(memory[2048+i/4*64+4*c+i%4])
						if op == DotSS || op == DotSU {
							a = int32(int8(a))
						}
						if op == DotSS || op == DotUS {
							b = int32(int8(b))
						}
						want += 2 * a * b
					}
					if got := int32(binary.LittleEndian.Uint32(memory[4096+128*r+4*c:])); got != want {
						t.Fatalf("%v of %v: row %d, column %d = %d, want %d", op, shape, r, c, got, want)
					}
				}
			}
		}
	}
}

func TestConfigurationIsStored(t *testing.T) {
	var s State
	c, out := config(7, 16, 32), make(slab, ConfigBytes)
	run(t, &s, c, Inst{Op: LoadConfig}, 0, 0)
	run(t, &s, out, Inst{Op: StoreConfig}, 0, 0)
	if !s.Configured() || string(out) != string(c) {
		t.Errorf("configured %v, stored % x, want % x", s.Configured(), out, c)
	}
	run(t, &s, nil, Inst{Op: Release}, 0, 0)
	run(t, &s, out, Inst{Op: StoreConfig}, 0, 0)
	if s.Configured() || string(out) != string(make(slab, ConfigBytes)) {
		t.Errorf("configured %v after release, stored % x, want zeros", s.Configured(), out)
	}
}

// TestRefusals has a case for each thing a processor refuses.
func TestRefusals(t *testing.T) {
	change := func(at int, to byte) slab {
		c := config(8, 16, 32)
		c[at] = to
		return c
	}
	dot := Inst{Op: DotSU, A: 1, B: 2}
	for _, c := range []struct {
		name   string
		config slab
		inst   Inst
		want   string
	}{
		{"palette", change(0, 2), dot, "#GP: palette 2"},
		{"reserved", change(9, 1), dot, "#GP: reserved byte 9"},
		{"rows", change(48, 17), dot, "#GP: tile 0 of 17 rows"},
		{"bytes", change(16, 65), dot, "#GP: tile 0 of 8 rows of 65 bytes"},
		{"rows without bytes", change(51, 1), dot, "#GP: tile 3 of 1 rows of 0 bytes"},
		{"ninth tile", change(56, 1), dot, "#GP: tile 8 does not exist"},
		{"released", change(0, 0), dot, "#UD: tiles are not configured"},
		{"unused tile", change(0, 1), Inst{Op: Zero, Dst: 5}, "#UD: tile 5 is not configured"},
		{"unused source", change(0, 1), Inst{Op: DotSS, A: 1, B: 5}, "#UD: tile 5 is not configured"},
		{"one tile twice", change(0, 1), Inst{Op: DotSS, A: 1, B: 1}, "which are not three"},
		{"rows differ", change(49, 7), dot, "#UD: TDPBSUD of 8 × 64 bytes, 7 × 32 and 8 × 64"},
		{"depth differs", change(50, 7), dot, "8 × 32 and 7 × 64"},
		{"columns differ", change(20, 60), dot, "8 × 32 and 8 × 60"},
		{"half a value", change(18, 30), dot, "#UD: TDPBSUD of rows of 64, 30 and 64 bytes"},
		{"beyond memory", change(0, 1), Inst{Op: Load, Dst: 1}, "#PF"},
		{"store beyond memory", change(0, 1), Inst{Op: Store, Dst: 1}, "#PF"},
	} {
		var s State
		err := s.Execute(Inst{Op: LoadConfig}, c.config, 0, 0)
		if err == nil {
			err = s.Execute(c.inst, c.config, 0, 32)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
