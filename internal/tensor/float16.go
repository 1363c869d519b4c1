package tensor

import "math"

// F16ToF32 widens an IEEE 754 half-precision number. Every half is a float32, so the result is exact; a signalling
// NaN becomes quiet, as the processor's own conversion makes it.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	magnitude := uint32(h & 0x7fff)
	if magnitude-0x0400 < 0x7800 { // normal: move the fields, and the exponent's bias from 15 to 127
		return math.Float32frombits(sign | (magnitude<<13 + (127-15)<<23))
	}
	return f16SpecialToF32(sign, magnitude)
}

// f16SpecialToF32 widens zero, subnormals, infinity and NaN, apart so that F16ToF32 can be inlined.
func f16SpecialToF32(sign, magnitude uint32) float32 {
	switch {
	case magnitude > 0x7c00:
		return math.Float32frombits(sign | 0x7fc00000 | magnitude<<13)
	case magnitude == 0x7c00:
		return math.Float32frombits(sign | 0x7f800000)
	}
	value := float32(magnitude) * 0x1p-24 // a subnormal half counts units of 2^-24
	return math.Float32frombits(sign | math.Float32bits(value))
}

// F32ToF16 rounds to the nearest half-precision number, ties to even. What is too large becomes infinity, what is
// too small becomes a subnormal or zero, and NaN stays a (quiet) NaN.
func F32ToF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	magnitude := bits & 0x7fffffff
	switch {
	case magnitude > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(magnitude>>13&0x3ff)
	case magnitude >= 0x477ff000: // 65520 and more round to infinity
		return sign | 0x7c00
	case magnitude >= 0x38800000: // at least 2^-14, the smallest normal half
		odd := magnitude >> 13 & 1
		return sign | uint16((magnitude-(127-15)<<23+0x0fff+odd)>>13)
	case magnitude < 0x33000000: // less than 2^-25, half of the smallest subnormal
		return sign
	}
	// Subnormal: shift the significand, with its leading one, down to units of 2^-24, keeping what falls off.
	shift := 126 - magnitude>>23
	significand := magnitude&0x007fffff | 0x00800000
	units := significand >> shift
	rest, half := significand&(1<<shift-1), uint32(1)<<(shift-1)
	if rest > half || rest == half && units&1 == 1 {
		units++
	}
	return sign | uint16(units)
}

// BF16ToF32 widens a bfloat16, which is the upper half of a float32.
func BF16ToF32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// F32ToBF16 rounds to the nearest bfloat16, ties to even. NaN stays a (quiet) NaN.
func F32ToBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 0x7f800000 {
		return uint16(bits>>16) | 0x0040
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
