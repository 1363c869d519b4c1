package tensor

import (
	"math"
	"testing"
)

// slowF16ToF32 is the definition: sign · significand · 2^exponent in float64.
func slowF16ToF32(h uint16) float64 {
	sign, exponent, fraction := 1.0, int(h>>10&31), float64(h&0x3ff)
	if h&0x8000 != 0 {
		sign = -1
	}
	switch {
	case exponent == 31 && fraction != 0:
		return math.NaN()
	case exponent == 31:
		return math.Inf(int(sign))
	case exponent == 0:
		return math.Copysign(math.Ldexp(fraction, -24), sign)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

func TestF16ToF32All(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got, want := F16ToF32(h), slowF16ToF32(h)
		if math.IsNaN(want) {
			if got == got {
				t.Fatalf("F16ToF32(%#04x) = %v, want NaN", h, got)
			}
			continue
		}
		if float64(got) != want || math.Signbit(float64(got)) != math.Signbit(want) {
			t.Fatalf("F16ToF32(%#04x) = %v, want %v", h, got, want)
		}
		if back := F32ToF16(got); back != h {
			t.Fatalf("F32ToF16(F16ToF32(%#04x)) = %#04x", h, back)
		}
	}
}

// TestF32ToF16Rounds walks all neighbouring pairs of finite halves and looks at the middle and its two neighbours.
func TestF32ToF16Rounds(t *testing.T) {
	for h := range uint16(0x7c00) {
		low, high := float64(F16ToF32(h)), float64(F16ToF32(h+1))
		if h == 0x7bff {
			high = 65536 // where the next half would be, were it not infinity
		}
		middle := float32((low + high) / 2)
		even := h + h&1
		for _, c := range []struct {
			f    float32
			want uint16
		}{
			{math.Nextafter32(middle, 0), h},
			{middle, even},
			{math.Nextafter32(middle, math.MaxFloat32), h + 1},
		} {
			if got := F32ToF16(c.f); got != c.want {
				t.Fatalf("F32ToF16(%v) = %#04x, want %#04x", c.f, got, c.want)
			}
			if got := F32ToF16(-c.f); got != c.want|0x8000 {
				t.Fatalf("F32ToF16(%v) = %#04x, want %#04x", -c.f, got, c.want|0x8000)
			}
		}
	}
}

func TestF32ToF16Special(t *testing.T) {
	for _, c := range []struct {
		f    float32
		want uint16
	}{
		{float32(math.Inf(1)), 0x7c00},
		{float32(math.Inf(-1)), 0xfc00},
		{math.MaxFloat32, 0x7c00},
		{math.SmallestNonzeroFloat32, 0},
		{-math.SmallestNonzeroFloat32, 0x8000},
		{0x1p-25, 0}, // tie with zero, which is even
	} {
		if got := F32ToF16(c.f); got != c.want {
			t.Errorf("F32ToF16(%v) = %#04x, want %#04x", c.f, got, c.want)
		}
	}
	if got := F32ToF16(float32(math.NaN())); got&0x7c00 != 0x7c00 || got&0x3ff == 0 {
		t.Errorf("F32ToF16(NaN) = %#04x, want a NaN", got)
	}
}

func TestBF16(t *testing.T) {
	for i := range 1 << 16 {
		b := uint16(i)
		f := BF16ToF32(b)
		if f != f {
			if back := F32ToBF16(f); BF16ToF32(back) == BF16ToF32(back) {
				t.Fatalf("F32ToBF16(NaN %#04x) = %#04x, want a NaN", b, back)
			}
			continue
		}
		if back := F32ToBF16(f); back != b {
			t.Fatalf("F32ToBF16(BF16ToF32(%#04x)) = %#04x", b, back)
		}
	}
	for _, c := range []struct {
		bits uint32
		want uint16
	}{
		{0x3f808000, 0x3f80}, // tie, even below
		{0x3f818000, 0x3f82}, // tie, even above
		{0x3f807fff, 0x3f80},
		{0x3f808001, 0x3f81},
		{0x7f7fffff, 0x7f80}, // the largest float32 rounds to infinity
		{0x7f800001, 0x7fc0}, // a NaN whose payload would be cut off
	} {
		if got := F32ToBF16(math.Float32frombits(c.bits)); got != c.want {
			t.Errorf("F32ToBF16(%#08x) = %#04x, want %#04x", c.bits, got, c.want)
		}
	}
}
