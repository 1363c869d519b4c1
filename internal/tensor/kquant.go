package tensor

// The k-quants are blocks of 256 with scales of their own inside, which are quantised in turn.

// scaleMin unpacks scale and minimum of sub-block j (0–7) from the 12 bytes that hold eight 6-bit pairs: the first
// four pairs lie in the low six bits of bytes 0–3 and 4–7; the others have their low four bits in bytes 8–11 and
// their high two in the top of bytes 0–7.
func scaleMin(s []byte, j int) (scale, minimum uint8) {
	if j < 4 {
		return s[j] & 63, s[j+4] & 63
	}
	return s[j+4]&15 | s[j-4]>>6<<4, s[j+4]>>4 | s[j]>>6<<4
}

// dequantizeQ4_K reads blocks of 256: {d f16, dmin f16, scales [12]byte, q [128]byte}; in sub-block j of 32 values
// value = d·scale(j)·q - dmin·min(j). 32 bytes hold two sub-blocks, low halves first.
func dequantizeQ4_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[144:] {
		d, dmin, scales, q := half(src), half(src[2:]), src[4:16], src[16:144]
		for j := 0; j < 8; j += 2 {
			s0, m0 := scaleMin(scales, j)
			s1, m1 := scaleMin(scales, j+1)
			d0, d1 := d*float32(s0), d*float32(s1)
			min0, min1 := float32(dmin*float32(m0)), float32(dmin*float32(m1))
			y := dst[32*j : 32*j+64]
			for i, b := range q[16*j : 16*j+32] {
				y[i] = float32(d0*float32(b&15)) - min0
				y[i+32] = float32(d1*float32(b>>4)) - min1
			}
		}
	}
}

// dequantizeQ5_K reads blocks of 256: {d f16, dmin f16, scales [12]byte, h [32]byte, q [128]byte}, like Q4_K with
// bit j of h[i] as the fifth bit of value i of sub-block j.
func dequantizeQ5_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[176:] {
		d, dmin, scales, h, q := half(src), half(src[2:]), src[4:16], src[16:48], src[48:176]
		for j := 0; j < 8; j += 2 {
			s0, m0 := scaleMin(scales, j)
			s1, m1 := scaleMin(scales, j+1)
			d0, d1 := d*float32(s0), d*float32(s1)
			min0, min1 := float32(dmin*float32(m0)), float32(dmin*float32(m1))
			y := dst[32*j : 32*j+64]
			for i, b := range q[16*j : 16*j+32] {
				y[i] = float32(d0*float32(b&15|h[i]>>j&1<<4)) - min0
				y[i+32] = float32(d1*float32(b>>4|h[i]>>(j+1)&1<<4)) - min1
			}
		}
	}
}

// dequantizeQ6_K reads blocks of 256: {low [128]byte, high [64]byte, scales [16]int8, d f16}; in sub-block j of 16
// values value = d·scale(j)·(q-32). Each half of the block is four runs of 32 values: low halves of 32 bytes, low
// halves of the next 32, then the high halves of both; run r takes bits 2r and 2r+1 of 32 bytes of high.
func dequantizeQ6_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[210:] {
		d := half(src[208:])
		for n := range 2 {
			low, high := src[64*n:64*n+64], src[128+32*n:128+32*n+32]
			scales, y := src[192+8*n:192+8*n+8], dst[128*n:128*n+128]
			for i, h := range high {
				s := i / 16
				y[i] = d * float32(int8(scales[s])) * float32(int(low[i]&15|h&3<<4)-32)
				y[i+32] = d * float32(int8(scales[s+2])) * float32(int(low[i+32]&15|h>>2&3<<4)-32)
				y[i+64] = d * float32(int8(scales[s+4])) * float32(int(low[i]>>4|h>>4&3<<4)-32)
				y[i+96] = d * float32(int8(scales[s+6])) * float32(int(low[i+32]>>4|h>>6<<4)-32)
			}
		}
	}
}
