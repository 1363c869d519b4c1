package tensor

import "math"

// Two formats have 4-bit numbers that stand for the entries of a table instead of for themselves.

// Codebook returns the integers that the sixteen 4-bit numbers of IQ4_NL or MXFP4 stand for. The second result is false
// for other formats, whose numbers are their values.
func Codebook(t DType) ([16]int8, bool) {
	switch t {
	case IQ4_NL: // kvalues_iq4nl of ggml-common.h
		return [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, true
	case MXFP4: // twice the values of E2M1 (OCP Microscaling Formats 1.0, §5.3.3); kvalues_fp4 of ggml-common.h
		return [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}, true
	}
	return [16]int8{}, false
}

// HalfE8M0 returns half the power of two that a scale of MXFP4 stands for, 2^(e-128): half, since its Codebook has
// twice the values. Like ggml, it takes 255 for a number, where OCP's format has NaN. The low half of the result's bits
// is zero, so that a BF16 holds it.
func HalfE8M0(e uint8) float32 {
	if e < 2 { // subnormal
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

// dequantizeIQ4_NL reads blocks of 32: {d f16, q [16]byte}; value = d·codebook(q), where q is the low halves of the 16
// bytes, then the high halves.
func dequantizeIQ4_NL(dst []float32, src []byte) {
	codes, _ := Codebook(IQ4_NL)
	for ; len(dst) > 0; dst, src = dst[32:], src[18:] {
		dequantizeCodes(dst[:32], src[2:18], half(src), &codes)
	}
}

// dequantizeMXFP4 reads blocks of 32: {e uint8, q [16]byte}; value = 2^(e-128)·codebook(q), q as in IQ4_NL.
func dequantizeMXFP4(dst []float32, src []byte) {
	codes, _ := Codebook(MXFP4)
	for ; len(dst) > 0; dst, src = dst[32:], src[17:] {
		dequantizeCodes(dst[:32], src[1:17], HalfE8M0(src[0]), &codes)
	}
}

func dequantizeCodes(dst []float32, q []byte, scale float32, codes *[16]int8) {
	for i, b := range q {
		dst[i] = scale * float32(codes[b&15])
		dst[i+16] = scale * float32(codes[b>>4])
	}
}
