// Package tile executes Intel's AMX tile instructions in plain Go: the configuration of palette 1, loads, stores and
// the dot products of bytes, with the checks by which the processor refuses a wrong use. It follows the pseudo code of
// Intel's Software Developer's Manual, volume 2, chapter "Intel AMX Instruction Set Reference". Tests run kernels on it
// where no processor with AMX is at hand.
package tile

import (
	"encoding/binary"
	"fmt"
)

// Limits of palette 1, which is the only one.
const (
	Count       = 8  // tiles
	MaxRows     = 16 // of a tile
	MaxRowBytes = 64 // of a tile's row
	// ConfigBytes is the size of a configuration in memory.
	ConfigBytes = 64
)

// Memory is what loads and stores go to.
type Memory interface {
	// Read fills p with what lies at address.
	Read(p []byte, address uint64) error
	// Write copies p to address.
	Write(p []byte, address uint64) error
}

// State is the tiles of one thread. The zero value is the initial state: not configured.
type State struct {
	configured bool
	startRow   uint8
	rows       [Count]int
	rowBytes   [Count]int
	data       [Count][MaxRows][MaxRowBytes]byte
}

// Configured tells whether there is a configuration, so that signals and switches of threads have the tiles to save.
func (s *State) Configured() bool { return s.configured }

// Execute runs an instruction. address is its memory operand's, without the index in loads and stores of tiles, and
// stride the distance of their rows. An error is an exception of the processor's: #UD, #GP or #PF, and why; the state is
// then as before.
func (s *State) Execute(i Inst, m Memory, address, stride uint64) error {
	switch i.Op {
	case LoadConfig:
		return s.loadConfig(m, address)
	case StoreConfig:
		return m.Write(s.config(), address)
	case Release:
		*s = State{}
		return nil
	}
	if err := s.usable(i.Dst); err != nil {
		return err
	}
	switch i.Op {
	case Zero:
		s.data[i.Dst] = [MaxRows][MaxRowBytes]byte{}
		return nil
	case Load:
		return s.load(i.Dst, m, address, stride)
	case Store:
		return s.store(i.Dst, m, address, stride)
	}
	return s.dot(i)
}

// usable refuses tiles that are not configured.
func (s *State) usable(tile int) error {
	if !s.configured {
		return fmt.Errorf("#UD: tiles are not configured")
	}
	if s.rows[tile] == 0 {
		return fmt.Errorf("#UD: tile %d is not configured", tile)
	}
	return nil
}

// loadConfig reads {palette, start row, 14 zero bytes, [16]uint16 bytes of a row, [16]uint8 rows}.
func (s *State) loadConfig(m Memory, address uint64) error {
	var b [ConfigBytes]byte
	if err := m.Read(b[:], address); err != nil {
		return err
	}
	if b[0] == 0 {
		*s = State{}
		return nil
	}
	if b[0] != 1 {
		return fmt.Errorf("#GP: palette %d", b[0])
	}
	next := State{configured: true, startRow: b[1]}
	for i := 2; i < 16; i++ {
		if b[i] != 0 {
			return fmt.Errorf("#GP: reserved byte %d of the configuration is %d", i, b[i])
		}
	}
	for t := range 16 {
		rows, rowBytes := int(b[48+t]), int(binary.LittleEndian.Uint16(b[16+2*t:]))
		switch {
		case rows == 0 && rowBytes == 0:
			continue
		case t >= Count:
			return fmt.Errorf("#GP: tile %d does not exist", t)
		case rows == 0 || rowBytes == 0 || rows > MaxRows || rowBytes > MaxRowBytes:
			return fmt.Errorf("#GP: tile %d of %d rows of %d bytes", t, rows, rowBytes)
		}
		next.rows[t], next.rowBytes[t] = rows, rowBytes
	}
	*s = next
	return nil
}

// config is the inverse of loadConfig.
func (s *State) config() []byte {
	b := make([]byte, ConfigBytes)
	if !s.configured {
		return b
	}
	b[0], b[1] = 1, s.startRow
	for t := range Count {
		binary.LittleEndian.PutUint16(b[16+2*t:], uint16(s.rowBytes[t]))
		b[48+t] = byte(s.rows[t])
	}
	return b
}

// load reads rows; what a tile has beyond its configured size becomes zero.
func (s *State) load(tile int, m Memory, address, stride uint64) error {
	next := [MaxRows][MaxRowBytes]byte{}
	if size := s.rowBytes[tile]; s.startRow == 0 && stride == uint64(size) { // at once
		var all [MaxRows * MaxRowBytes]byte
		if err := m.Read(all[:s.rows[tile]*size], address); err != nil {
			return err
		}
		for r := range s.rows[tile] {
			copy(next[r][:size], all[r*size:])
		}
		s.data[tile] = next
		return nil
	}
	for r := int(s.startRow); r < s.rows[tile]; r++ {
		if err := m.Read(next[r][:s.rowBytes[tile]], address+uint64(r)*stride); err != nil {
			return err
		}
	}
	s.data[tile], s.startRow = next, 0
	return nil
}

func (s *State) store(tile int, m Memory, address, stride uint64) error {
	if size := s.rowBytes[tile]; s.startRow == 0 && stride == uint64(size) { // at once
		var all [MaxRows * MaxRowBytes]byte
		for r := range s.rows[tile] {
			copy(all[r*size:], s.data[tile][r][:size])
		}
		return m.Write(all[:s.rows[tile]*size], address)
	}
	for r := int(s.startRow); r < s.rows[tile]; r++ {
		if err := m.Write(s.data[tile][r][:s.rowBytes[tile]], address+uint64(r)*stride); err != nil {
			return err
		}
	}
	s.startRow = 0
	return nil
}

// dot adds to each 32-bit value of the destination the products of four bytes of a row of A and four of a column of B,
// over B's rows.
func (s *State) dot(i Inst) error {
	if err := s.dotShape(i); err != nil {
		return err
	}
	aSigned, bSigned := i.Op == DotSS || i.Op == DotSU, i.Op == DotSS || i.Op == DotUS
	sum, a, b := &s.data[i.Dst], &s.data[i.A], &s.data[i.B]
	for r := range s.rows[i.Dst] {
		for c := 0; c < s.rowBytes[i.Dst]; c += 4 {
			total := int32(binary.LittleEndian.Uint32(sum[r][c:]))
			for k := range s.rows[i.B] {
				for j := range 4 {
					total += value(a[r][4*k+j], aSigned) * value(b[k][c+j], bSigned)
				}
			}
			binary.LittleEndian.PutUint32(sum[r][c:], uint32(total))
		}
	}
	s.startRow = 0
	return nil
}

func value(b byte, signed bool) int32 {
	if signed {
		return int32(int8(b))
	}
	return int32(b)
}

// dotShape refuses operands that do not fit together.
func (s *State) dotShape(i Inst) error {
	for _, t := range []int{i.A, i.B} {
		if err := s.usable(t); err != nil {
			return err
		}
	}
	c, a, b := i.Dst, i.A, i.B
	switch {
	case a == b || a == c || b == c:
		return fmt.Errorf("#UD: %v of tiles %d, %d and %d, which are not three", i.Op, c, a, b)
	case s.rowBytes[c]%4 != 0 || s.rowBytes[a]%4 != 0 || s.rowBytes[b]%4 != 0:
		return fmt.Errorf("#UD: %v of rows of %d, %d and %d bytes", i.Op, s.rowBytes[c], s.rowBytes[a], s.rowBytes[b])
	case s.rows[c] != s.rows[a], s.rowBytes[c] != s.rowBytes[b], s.rowBytes[a]/4 != s.rows[b]:
		return fmt.Errorf("#UD: %v of %d × %d bytes, %d × %d and %d × %d", i.Op, s.rows[c], s.rowBytes[c], s.rows[a],
			s.rowBytes[a], s.rows[b], s.rowBytes[b])
	}
	return nil
}
