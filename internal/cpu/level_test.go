package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/quire-ai/quire/internal/tensor"
)

// fastLevels are the levels beside Generic; each test compares each with Generic, bit for bit.
func fastLevels(t *testing.T) []Level {
	levels := Levels()[1:]
	if len(levels) == 0 {
		t.Skip("this processor has no level beside generic")
	}
	return levels
}

// differ describes the first value whose bits are not as wanted, NaN being as good as NaN.
func differ(got, want []float32) string {
	for i, g := range got {
		if math.Float32bits(g) != math.Float32bits(want[i]) && (g == g || want[i] == want[i]) {
			return fmt.Sprintf("value %d of %d = %x, want %x", i, len(got), g, want[i])
		}
	}
	return ""
}

// extremes puts hard cases among x: zero blocks, subnormals, huge and equal values, ties of the rounding to bytes.
func extremes(x []float32, seed uint64) []float32 {
	r := seeded(seed)
	for b := 0; b+blockCols <= len(x); b += blockCols {
		block := x[b : b+blockCols]
		switch r.IntN(8) {
		case 0:
			clear(block)
		case 1:
			for i := range block {
				block[i] = math.Float32frombits(r.Uint32() & 0x807fffff)
			}
		case 2:
			for i := range block {
				block[i] *= 1e30
			}
		case 3:
			for i := range block {
				block[i] = float32(r.IntN(3)-1) * 127
			}
		case 4:
			for i := range block {
				block[i] = float32(r.IntN(509)-254) / 2
			}
			block[r.IntN(blockCols)] = 127
		}
	}
	return x
}

func TestLevelsMatMul(t *testing.T) {
	generic := newDevice(t, Generic, 1)
	for _, level := range fastLevels(t) {
		d := newDevice(t, level, 1)
		for _, typ := range packTypes {
			for rows := 1; rows <= 70; rows++ {
				c := matmulCase{typ: typ, rows: rows, outputs: 1 + rows*7%35, cols: 256 * (1 + rows%9/8)}
				if typ.BlockElements() != 256 {
					c.cols = 32 * (1 + rows%5)
				}
				if typ.BlockElements() == 1 {
					c.cols = 5 + 3*rows
				}
				want := c.run(t, generic)
				if s := differ(c.run(t, d), want); s != "" {
					t.Errorf("%v %+v: %s", level, c, s)
				}
			}
		}
	}
}

type matmulCase struct {
	typ                 tensor.DType
	rows, outputs, cols int
}

func (c matmulCase) run(t *testing.T, d *Device) []float32 {
	seed := uint64(c.typ)<<20 + uint64(c.rows)
	r := seeded(seed)
	m, err := d.PackRows(c.cols,
		Part{Type: c.typ, Rows: c.outputs, Data: randomWeights(r, c.typ, c.outputs, c.cols)},
		Part{Type: c.typ, Rows: 16, Data: randomWeights(r, c.typ, 16, c.cols)},
	)
	if err != nil {
		t.Fatal(err)
	}
	x, err := d.NewActs(c.rows+3, c.cols)
	if err != nil {
		t.Fatal(err)
	}
	x.SetRows(c.rows)
	copy(x.F32, extremes(normals(r, c.rows*c.cols), seed))
	out := normals(r, c.rows*m.Rows)
	switch c.rows % 3 {
	case 0:
		d.MatMul(out, m, x)
	case 1:
		d.MatMulAdd(out, m, x)
	case 2:
		m.Bias = normals(r, m.Rows)
		d.MatMul(out, m, x)
	}
	return out
}

func TestLevelsQuantize(t *testing.T) {
	generic := newDevice(t, Generic, 1)
	for _, level := range fastLevels(t) {
		d := newDevice(t, level, 1)
		for _, rows := range []int{1, 2, 16, 17, 31} {
			for _, cols := range []int{32, 96, 576, 70} {
				want, got := quantized(t, generic, rows, cols), quantized(t, d, rows, cols)
				if s := differ(got.scale, want.scale) + differ(got.sum, want.sum); s != "" {
					t.Fatalf("%v %d × %d: %s", level, rows, cols, s)
				}
				if !slices.Equal(got.q, want.q) || !slices.Equal(got.minus8, want.minus8) || !slices.Equal(got.minus16, want.minus16) ||
					!slices.Equal(got.minus32, want.minus32) || !slices.Equal(got.bias, want.bias) {
					t.Fatalf("%v %d × %d: quantised values differ", level, rows, cols)
				}
			}
		}
	}
}

func quantized(t *testing.T, d *Device, rows, cols int) *Acts {
	x, err := d.NewActs(rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	x.SetRows(rows)
	copy(x.F32, extremes(normals(seeded(uint64(cols)), rows*cols), uint64(rows)))
	x.F32[cols/2] = float32(math.Inf(1))
	x.F32[rows*cols-1] = float32(math.NaN())
	d.Quantize(x)
	return x
}

// Each elementwise kernel over sizes that are and are not whole vectors.
func TestLevelsRows(t *testing.T) {
	want := kernelsOf(Generic)
	for _, level := range fastLevels(t) {
		got := kernelsOf(level)
		for _, n := range []int{1, 8, 16, 24, 31, 64, 100, 576} {
			r := seeded(uint64(n))
			a, b, c := spread(n, 1), spread(n, 2), normals(r, n)
			check := func(name string, f func(k kernels, dst []float32)) {
				x, y := slices.Clone(a), slices.Clone(a)
				f(want, x)
				f(got, y)
				if s := differ(y, x); s != "" {
					t.Errorf("%v %s of %d: %s", level, name, n, s)
				}
			}
			check("silu", func(k kernels, dst []float32) { k.silu(dst, b, c) })
			check("gelu", func(k kernels, dst []float32) { k.gelu(dst, b, c) })
			check("add", func(k kernels, dst []float32) { k.add(dst, b) })
			check("scale", func(k kernels, dst []float32) { k.scale(dst, 1.7) })
			check("softcap", func(k kernels, dst []float32) { k.softcap(dst, 30) })
			check("mix", func(k kernels, dst []float32) { k.mix(dst, b, 0.3, 1.9) })
			check("merge sums", func(k kernels, dst []float32) {
				p, q, sum := make([]float32, n), make([]float32, n), slices.Clone(c)
				k.mergeSums(p, q, dst, sum, b, a)
				copy(dst, sum)
				k.add(dst, p)
				k.add(dst, q)
			})
			check("divide", func(k kernels, dst []float32) { k.divide(dst, b, 0.7) })
			check("norm", func(k kernels, dst []float32) { k.norm(dst, c, b, 1e-6) })
			check("norm in place", func(k kernels, dst []float32) { k.norm(dst, dst, c, 1e-6) })
			check("halves", func(k kernels, dst []float32) {
				h := make([]uint16, n)
				k.halves(h, slices.Clone(dst))
				for i, v := range h {
					dst[i] = tensor.F16ToF32(v)
				}
			})
			if n%2 == 0 {
				check("rotate pairs", func(k kernels, dst []float32) { k.rotate(dst, b, c, true) })
				cos, sin := mirrored(b, 1), mirrored(c, -1)
				check("rotate halves", func(k kernels, dst []float32) { k.rotate(dst, cos, sin, false) })
				cos, sin = mirrored(b[:n/4*2], 1), mirrored(c[:n/4*2], -1)
				check("rotate a part", func(k kernels, dst []float32) { k.rotate(dst, cos, sin, false) })
			}
		}
	}
}

// mirrored returns x with its first half times sign as its second, as the tables of half-split rotation have it.
func mirrored(x []float32, sign float32) []float32 {
	y := slices.Clone(x)
	for i := range len(y) / 2 {
		y[len(y)/2+i] = sign * y[i]
	}
	return y
}

// spread returns numbers of all sizes, and a few that are none.
func spread(n int, seed uint64) []float32 {
	r := seeded(seed)
	x := make([]float32, n)
	for i := range x {
		switch r.IntN(6) {
		case 0:
			x[i] = math.Float32frombits(r.Uint32())
		case 1:
			x[i] = float32(r.NormFloat64()) * 60
		case 2:
			x[i] = float32(r.NormFloat64()) * 40000
		default:
			x[i] = float32(r.NormFloat64())
		}
	}
	return x
}

func TestLevelsSoftmax(t *testing.T) {
	want := kernelsOf(Generic)
	for _, level := range fastLevels(t) {
		got := kernelsOf(level)
		r := seeded(7)
		for range 3000 {
			lo := r.IntN(splitTokens)
			hi := lo - 2 + r.IntN(splitTokens-lo+3)
			x := normals(r, splitTokens)
			if r.IntN(10) == 0 {
				x[r.IntN(splitTokens)] = float32(math.Inf(r.IntN(3) - 1))
			}
			y := slices.Clone(x)
			limit := float32(r.IntN(2) * 20)
			top, sum := want.softmax(x, lo, hi, 0.125, limit)
			top2, sum2 := got.softmax(y, lo, hi, 0.125, limit)
			if s := differ(append(y, top2+0, sum2), append(x, top+0, sum)); s != "" {
				t.Fatalf("%v softmax of %d to %d, limit %v: %s", level, lo, hi, limit, s)
			}
		}
	}
}

func TestLevelsAttention(t *testing.T) {
	for _, level := range fastLevels(t) {
		for i, c := range []attentionCase{
			{dim: 64, keyHeads: 3, perKey: 3, past: 300, rows: 33},
			{dim: 64, keyHeads: 2, perKey: 7, past: 700, rows: 1},
			{dim: 16, keyHeads: 1, perKey: 1, past: 0, rows: 17},
			{dim: 32, keyHeads: 2, perKey: 2, past: 31, rows: 5, window: 20},
			{dim: 80, keyHeads: 1, perKey: 8, past: 600, rows: 4, softcap: 30},
			{dim: 256, keyHeads: 1, perKey: 4, past: 600, rows: 3, window: 512},
		} {
			blockSize := []int{16, 8, 32}[i%3]
			want := c.run(t, newDevice(t, Generic, 1), blockSize, c.rows)
			if s := differ(c.run(t, newDevice(t, level, 2), blockSize, c.rows), want); s != "" {
				t.Errorf("%v %+v: %s", level, c, s)
			}
		}
	}
}

func TestLevelsLogits(t *testing.T) {
	spec := LogitsAt(Generic)
	for _, level := range fastLevels(t) {
		fast := LogitsAt(level)
		for n := 1; n <= 260; n += 1 + n%7 {
			x := normals(seeded(uint64(n)), n)
			if got, want := fast.Greatest(x), spec.Greatest(x); got != want {
				t.Errorf("%v: greatest of %d = %v, want %v", level, n, got, want)
			}
			w := Weighing{Top: spec.Greatest(x), Inverse: 1 / 0.7, Least: x[n/2]}
			x[n/3] = -math.MaxFloat32
			got, want := make([]float32, n), make([]float32, n)
			sum, wantSum := fast.Weights(got, x, w), spec.Weights(want, x, w)
			if s := differ(append(got, sum), append(want, wantSum)); s != "" {
				t.Errorf("%v: weights of %d: %s", level, n, s)
			}
			for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				x[n-1] = float32(odd)
				if top := fast.Greatest(x); top == top {
					t.Errorf("%v: greatest of %d with %v = %v, want NaN", level, n, odd, top)
				}
			}
		}
	}
}
