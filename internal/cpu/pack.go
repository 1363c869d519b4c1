package cpu

import (
	"encoding/binary"

	"github.com/quire-ai/quire/internal/tensor"
)

// panelSource is up to 16 rows of a GGUF tensor.
type panelSource struct {
	format   tensor.DType
	cols     int
	rowBytes int
	rows     []byte
}

// packPanel interleaves the rows of src into dst, which is zero.
func packPanel(dst []byte, l layout, src panelSource) {
	numbers, scales := dst[:l.numbersBytes(src.cols)], dst[l.numbersBytes(src.cols):]
	for lane := 0; lane*src.rowBytes < len(src.rows); lane++ {
		row := src.rows[lane*src.rowBytes:][:src.rowBytes]
		if l.kind.isFloat() {
			packFloats(numbers, row, lane, l.blockBytes/lanes)
			continue
		}
		bytes := src.format.BlockBytes()
		per := src.format.BlockElements() / blockCols
		var unpacked [256]uint8
		for b := 0; b*bytes < len(row); b++ {
			record := scales[b*per/l.scaleBlocks*l.scaleBytes:][:l.scaleBytes]
			unpackBlock(src.format, &unpacked, record, lane, row[b*bytes:][:bytes])
			for i := range per {
				q := (*[blockCols]uint8)(unpacked[i*blockCols:])
				at := numbers[(b*per+i)*l.blockBytes:][:l.blockBytes]
				if l.bits == 8 {
					placeBytes(at, q, lane)
					continue
				}
				placeNibbles(at, q, lane)
				placeHighBits(at[256:], q, lane, l.bits-4)
			}
		}
	}
}

// packFloats puts a row of floats of the given size into its lane.
func packFloats(numbers, row []byte, lane, size int) {
	for i := 0; i*size < len(row); i++ {
		copy(numbers[(i*lanes+lane)*size:][:size], row[i*size:])
	}
}

func placeBytes(dst []byte, q *[blockCols]uint8, lane int) {
	for g := range 8 {
		copy(dst[g*64+lane*4:][:4], q[g*4:][:4])
	}
}

func placeNibbles(dst []byte, q *[blockCols]uint8, lane int) {
	for g := range 4 {
		d, low, high := dst[g*64+lane*4:][:4], q[g*4:][:4], q[16+g*4:][:4]
		for j := range d {
			d[j] = low[j]&15 | high[j]<<4
		}
	}
}

// placeHighBits puts the bits above the fourth of each number, 0 to 2 of them, where layout says.
func placeHighBits(dst []byte, q *[blockCols]uint8, lane, bits int) {
	if bits == 0 {
		return
	}
	perByte := 8 / bits
	for g := range 8 {
		d := dst[g/perByte*64+lane*4:][:4]
		for j := range d {
			d[j] |= q[g*4+j] >> 4 << (g % perByte * bits)
		}
	}
}

// unpackBlock reads one block of src as unsigned numbers, in column order, and puts its scales into its lane of record.
// The formats are described in package tensor.
func unpackBlock(t tensor.DType, q *[256]uint8, record []byte, lane int, src []byte) {
	half := func(at int, from []byte) { copy(record[at+2*lane:][:2], from[:2]) }
	switch t {
	case tensor.Q8_0:
		half(0, src)
		for i, v := range src[2:34] {
			q[i] = v ^ 0x80 // int8 + 128
		}
	case tensor.Q4_0:
		half(0, src)
		nibbles(q[:], src[2:18])
	case tensor.IQ4_NL:
		half(0, src)
		nibbles(q[:], src[2:18])
	case tensor.MXFP4:
		binary.LittleEndian.PutUint16(record[2*lane:], tensor.F32ToBF16(tensor.HalfE8M0(src[0]))) // exact
		nibbles(q[:], src[1:17])
	case tensor.Q4_1:
		half(0, src)
		half(32, src[2:])
		nibbles(q[:], src[4:20])
	case tensor.Q5_0:
		half(0, src)
		nibbles(q[:], src[6:22])
		fifthBits(q[:], src[2:])
	case tensor.Q5_1:
		half(0, src)
		half(32, src[2:])
		nibbles(q[:], src[8:24])
		fifthBits(q[:], src[4:])
	case tensor.Q4_K:
		kScales(record, lane, src)
		for j := range 4 {
			nibbles(q[64*j:], src[16+32*j:][:32])
		}
	case tensor.Q5_K:
		kScales(record, lane, src)
		for j := range 4 {
			nibbles(q[64*j:], src[48+32*j:][:32])
		}
		for i := range q {
			q[i] |= src[16+i%32] >> (i / 32) & 1 << 4
		}
	case tensor.Q6_K:
		half(0, src[208:])
		for i := range 16 {
			record[32+i*lanes+lane] = src[192+i]
		}
		for n := range 2 {
			low, high, y := src[64*n:][:64], src[128+32*n:][:32], q[128*n:][:128]
			for i, h := range high {
				y[i] = low[i]&15 | h&3<<4
				y[i+32] = low[i+32]&15 | h>>2&3<<4
				y[i+64] = low[i]>>4 | h>>4&3<<4
				y[i+96] = low[i+32]>>4 | h>>6<<4
			}
		}
	}
}

// nibbles writes the low halves of src, then the high halves.
func nibbles(q, src []byte) {
	for i, b := range src {
		q[i], q[i+len(src)] = b&15, b>>4
	}
}

// fifthBits adds bit i of the uint32 in src, times 16, to value i of 32.
func fifthBits(q, src []byte) {
	h := binary.LittleEndian.Uint32(src)
	for i := range blockCols {
		q[i] += uint8(h >> i & 1 << 4)
	}
}

// kScales copies d and dmin, and unpacks the eight pairs of 6-bit scale and minimum of Q4_K and Q5_K.
func kScales(record []byte, lane int, src []byte) {
	copy(record[2*lane:][:2], src[:2])
	copy(record[32+2*lane:][:2], src[2:4])
	s := src[4:16]
	for j := range 8 {
		scale, minimum := s[j&3]&63, s[j&3+4]&63
		if j >= 4 {
			scale, minimum = s[j+4]&15|s[j-4]>>6<<4, s[j+4]>>4|s[j]>>6<<4
		}
		record[64+32*j+lane], record[64+32*j+16+lane] = scale, minimum
	}
}
