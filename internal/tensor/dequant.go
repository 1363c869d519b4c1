package tensor

import (
	"encoding/binary"
	"math"
)

// The formats below follow ggml's definitions (ggml-common.h, ggml-quants.c). Products of a half-precision scale and
// a small integer are exact in float32, so the order of multiplications does not matter; where an offset is added,
// the product is converted explicitly, so that no compiler fuses it with the addition.

func dequantizeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func dequantizeF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = half(src[2*i:])
	}
}

func dequantizeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// dequantizeQ8_0 reads blocks of 32: {d f16, q [32]int8}; value = d·q.
func dequantizeQ8_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[34:] {
		d, q, y := half(src), src[2:34], dst[:32]
		for i := range y {
			y[i] = d * float32(int8(q[i]))
		}
	}
}

// dequantizeQ4_0 reads blocks of 32: {d f16, q [16]byte}; value = d·(q-8), where q is the low halves of the 16 bytes,
// then the high halves.
func dequantizeQ4_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[18:] {
		d, q, y := half(src), src[2:18], dst[:32]
		for i, b := range q {
			y[i] = d * float32(int(b&15)-8)
			y[i+16] = d * float32(int(b>>4)-8)
		}
	}
}

// dequantizeQ4_1 reads blocks of 32: {d f16, m f16, q [16]byte}; value = d·q + m.
func dequantizeQ4_1(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[20:] {
		d, m, q, y := half(src), half(src[2:]), src[4:20], dst[:32]
		for i, b := range q {
			y[i] = float32(d*float32(b&15)) + m
			y[i+16] = float32(d*float32(b>>4)) + m
		}
	}
}

// dequantizeQ5_0 reads blocks of 32: {d f16, h uint32, q [16]byte}; value = d·(q-16), where bit i of h is the fifth
// bit of value i.
func dequantizeQ5_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[22:] {
		d, h, q, y := half(src), binary.LittleEndian.Uint32(src[2:]), src[6:22], dst[:32]
		for i, b := range q {
			y[i] = d * float32(int(uint32(b&15)|h>>i&1<<4)-16)
			y[i+16] = d * float32(int(uint32(b>>4)|h>>(i+16)&1<<4)-16)
		}
	}
}

// dequantizeQ5_1 reads blocks of 32: {d f16, m f16, h uint32, q [16]byte}; value = d·q + m.
func dequantizeQ5_1(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[24:] {
		d, m, h, q, y := half(src), half(src[2:]), binary.LittleEndian.Uint32(src[4:]), src[8:24], dst[:32]
		for i, b := range q {
			y[i] = float32(d*float32(uint32(b&15)|h>>i&1<<4)) + m
			y[i+16] = float32(d*float32(uint32(b>>4)|h>>(i+16)&1<<4)) + m
		}
	}
}

// half reads a little-endian half-precision number.
func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }
