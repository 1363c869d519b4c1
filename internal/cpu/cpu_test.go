package cpu

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/quire-ai/quire/internal/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newDevice is a device that ends with the test.
func newDevice(t testing.TB, l Level, threads int) *Device {
	t.Helper()
	d, err := NewDevice(Options{Level: l, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// seeded returns a source of random numbers that is the same in each run.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// normals fills n numbers from a normal distribution, a few of them far out as in real activations.
func normals(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
		if r.IntN(100) == 0 {
			x[i] *= 20
		}
	}
	return x
}

// packTypes are the types Pack takes, floats first.
var packTypes = []tensor.DType{
	tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0, tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1,
	tensor.Q4_K, tensor.Q5_K, tensor.Q6_K, tensor.IQ4_NL, tensor.MXFP4,
}

// halfAt lists where the blocks of a type hold half-precision scales.
func halfAt(t tensor.DType) []int {
	switch t {
	case tensor.Q4_1, tensor.Q5_1, tensor.Q4_K, tensor.Q5_K:
		return []int{0, 2}
	case tensor.Q6_K:
		return []int{208}
	}
	return []int{0}
}

// randomWeights returns random tensor bytes with scales of a sensible size.
func randomWeights(r *rand.Rand, t tensor.DType, rows, cols int) []byte {
	n, err := tensor.RowBytes(t, cols)
	if err != nil {
		panic(err)
	}
	b := make([]byte, rows*n)
	switch t {
	case tensor.F32:
		for i := 0; i < len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], math.Float32bits(float32(r.NormFloat64()*0.1)))
		}
		return b
	case tensor.F16:
		for i := 0; i < len(b); i += 2 {
			binary.LittleEndian.PutUint16(b[i:], tensor.F32ToF16(float32(r.NormFloat64()*0.1)))
		}
		return b
	case tensor.BF16:
		for i := 0; i < len(b); i += 2 {
			binary.LittleEndian.PutUint16(b[i:], tensor.F32ToBF16(float32(r.NormFloat64()*0.1)))
		}
		return b
	}
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	if t == tensor.MXFP4 {
		for i := 0; i < len(b); i += t.BlockBytes() {
			b[i] = uint8(118 + r.IntN(8))
		}
		return b
	}
	for i := 0; i < len(b); i += t.BlockBytes() {
		for _, at := range halfAt(t) {
			binary.LittleEndian.PutUint16(b[i+at:], tensor.F32ToF16(float32(r.NormFloat64()*0.01)))
		}
	}
	return b
}

func TestFMA32(t *testing.T) {
	r := seeded(1)
	value := func() float32 {
		switch r.IntN(4) {
		case 0:
			return math.Float32frombits(r.Uint32()) // anything
		case 1:
			return float32(r.IntN(1<<12)) * 0x1p-6 // few bits: ties
		case 2:
			return math.Float32frombits(r.Uint32() & 0x807fffff) // subnormal
		}
		return float32(r.NormFloat64())
	}
	for range 200000 {
		a, b, c := value(), value(), value()
		if r.IntN(3) == 0 { // a sum that lands near a tie of the result
			c = float32(float64(a)*float64(b)) * float32(1+r.IntN(3)) * 0x1p24
		}
		got := fma32(a, b, c)
		want := exactFMA(a, b, c)
		if math.Float32bits(got) != math.Float32bits(want) && !(got != got && want != want) {
			t.Fatalf("fma32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
}

// exactFMA computes with as many digits as it takes.
func exactFMA(a, b, c float32) float32 {
	for _, v := range []float32{a, b, c} {
		if v != v || math.IsInf(float64(v), 0) {
			return float32(float64(a)*float64(b) + float64(c))
		}
	}
	exact := func(v float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(v)) }
	sum := exact(a)
	sum.Mul(sum, exact(b)).Add(sum, exact(c))
	if sum.Sign() == 0 {
		return float32(float64(a)*float64(b) + float64(c)) // the sign of zero
	}
	f, _ := sum.Float32()
	return f
}

func TestExp32(t *testing.T) {
	worst := 0.0
	for x := -87.0; x < 88; x += 0.00137 {
		got, want := float64(exp32(float32(x))), math.Exp(float64(float32(x)))
		worst = max(worst, math.Abs(got-want)/want)
	}
	if worst > 2.4e-7 { // two units in the last place
		t.Errorf("exp32 errs by %g", worst)
	}
	if exp32(0) != 1 || exp32(float32(math.Inf(-1))) != 0 || exp32(-100) != 0 {
		t.Error("exp32(0), exp32(-∞), exp32(-100) are not 1, 0, 0")
	}
	if v := exp32(float32(math.NaN())); v == v {
		t.Error("exp32(NaN) is a number")
	}
}

func TestSincos(t *testing.T) {
	r := seeded(2)
	for range 100000 {
		x := r.Float64() * 200000
		s, c := sincos(x)
		if math.Abs(s-math.Sin(x)) > 1e-15 || math.Abs(c-math.Cos(x)) > 1e-15 {
			t.Fatalf("sincos(%v) = %v, %v; want %v, %v", x, s, c, math.Sin(x), math.Cos(x))
		}
	}
}

func TestMatMulAgainstFloat64(t *testing.T) {
	for _, level := range Levels() {
		d := newDevice(t, level, 2)
		for _, typ := range packTypes {
			for _, rows := range []int{1, 3, 17} {
				testMatMul(t, d, typ, rows)
			}
		}
	}
}

// testMatMul compares a product with the float64 product of the dequantised weights and activations.
func testMatMul(t *testing.T, d *Device, typ tensor.DType, rows int) {
	const outputs, cols = 37, 512
	r := seeded(uint64(typ)*100 + uint64(rows))
	src := randomWeights(r, typ, outputs, cols)
	m, err := d.Pack(typ, outputs, cols, src)
	if err != nil {
		t.Fatal(err)
	}
	w := make([]float32, outputs*cols)
	if err := tensor.Dequantize(typ, w, src); err != nil {
		t.Fatal(err)
	}
	x, err := d.NewActs(rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	x.SetRows(rows)
	copy(x.F32, normals(r, rows*cols))
	got := make([]float32, rows*outputs)
	d.MatMul(got, m, x)
	a := make([]float32, rows*cols)
	copy(a, x.F32)
	if x.quantized {
		for i := range a {
			at := x.place(i/cols, i%cols/blockCols)
			a[i] = x.scale[at] * float32(x.q[at*blockCols+i%blockCols])
		}
	}
	for i, g := range got {
		var want, size float64
		for k := range cols {
			p := float64(w[i%outputs*cols+k]) * float64(a[i/outputs*cols+k])
			want += p
			size += math.Abs(p)
		}
		if math.Abs(float64(g)-want) > 1e-6*size {
			t.Fatalf("%v %v %d rows: output %d = %v, want %v", d.Level(), typ, rows, i, g, want)
		}
	}
}

func TestAttentionAgainstFloat64(t *testing.T) {
	for _, level := range Levels() {
		for _, c := range []attentionCase{
			{dim: 64, keyHeads: 3, perKey: 3, past: 0, rows: 40},
			{dim: 64, keyHeads: 2, perKey: 7, past: 700, rows: 1},
			{dim: 32, keyHeads: 1, perKey: 4, past: 500, rows: 20, window: 100},
			{dim: 16, keyHeads: 2, perKey: 1, past: 250, rows: 33, softcap: 5},
			{dim: 256, keyHeads: 1, perKey: 4, past: 5, rows: 3},
		} {
			var first []float32
			for _, blockSize := range []int{16, 8, 32} {
				for _, threads := range []int{1, 3} {
					got := c.run(t, newDevice(t, level, threads), blockSize, c.rows)
					if first == nil {
						first = got
						c.check(t, got)
					}
					for i, v := range got {
						if v != first[i] {
							t.Fatalf("%+v: blocks of %d, %d threads: value %d = %v, want %v", c, blockSize, threads, i, v, first[i])
						}
					}
				}
			}
			for i, v := range c.run(t, newDevice(t, level, 2), 16, 1) {
				if v != first[i] {
					t.Fatalf("%+v: one row at a time: value %d = %v, want %v", c, i, v, first[i])
				}
			}
		}
	}
}

type attentionCase struct {
	dim, keyHeads, perKey, past, rows, window int
	softcap                                   float32
}

func (c attentionCase) inputs() (q, k, v []float32) {
	r := seeded(uint64(c.dim*1000 + c.past))
	total := c.past + c.rows
	return normals(r, c.rows*c.keyHeads*c.perKey*c.dim), normals(r, total*c.keyHeads*c.dim), normals(r, total*c.keyHeads*c.dim)
}

// run computes the rows in chunks of so many.
func (c attentionCase) run(t *testing.T, d *Device, blockSize, chunk int) []float32 {
	q, k, v := c.inputs()
	total, heads := c.past+c.rows, c.keyHeads*c.perKey
	blocks := (total + blockSize - 1) / blockSize
	kv, err := NewKV(KVShape{Layers: 2, KVHeads: c.keyHeads, HeadDim: c.dim, BlockSize: blockSize}, blocks+3)
	if err != nil {
		t.Fatal(err)
	}
	defer kv.Close()
	for i := range kv.memory {
		kv.memory[i] = 0x55 // what an earlier owner left
	}
	table := make([]int32, blocks)
	for i := range table {
		table[i] = int32(blocks - i) // not in order of memory
	}
	width := c.keyHeads * c.dim
	d.WriteKV(kv, 1, []Seq{{Blocks: table, Rows: c.past}}, k, v, width)
	out := make([]float32, 0, c.rows*heads*c.dim)
	x, err := d.NewActs(chunk, heads*c.dim)
	if err != nil {
		t.Fatal(err)
	}
	for row := 0; row < c.rows; row += chunk {
		n := min(chunk, c.rows-row)
		seqs := []Seq{{Blocks: table, Rows: n, Pos: c.past + row}}
		d.WriteKV(kv, 1, seqs, k[(c.past+row)*width:], v[(c.past+row)*width:], width)
		x.SetRows(n)
		d.Attention(x, q[row*heads*c.dim:], heads*c.dim, kv, 1, seqs, AttentionOptions{
			Heads: heads, Scale: 0.125, Window: c.window, Softcap: c.softcap,
		})
		out = append(out, x.F32...)
	}
	return out
}

// check compares with the textbook formula in float64.
func (c attentionCase) check(t *testing.T, got []float32) {
	q, k, v := c.inputs()
	heads := c.keyHeads * c.perKey
	round := func(x float32) float64 { return float64(tensor.F16ToF32(tensor.F32ToF16(x))) }
	for i := range c.rows * heads {
		row, head := i/heads, i%heads
		pos := c.past + row
		var sum float64
		want := make([]float64, c.dim)
		for p := range pos + 1 {
			if c.window > 0 && p <= pos-c.window {
				continue
			}
			at := (p*c.keyHeads + head/c.perKey) * c.dim
			var s float64
			for n := range c.dim {
				s += float64(q[i*c.dim+n]) * round(k[at+n])
			}
			s *= 0.125
			if c.softcap > 0 {
				s = float64(c.softcap) * math.Tanh(s/float64(c.softcap))
			}
			e := math.Exp(s)
			sum += e
			for n := range want {
				want[n] += e * round(v[at+n])
			}
		}
		for n := range want {
			g := float64(got[i*c.dim+n])
			if math.Abs(g-want[n]/sum) > 1e-4 {
				t.Fatalf("%+v: row %d head %d value %d = %v, want %v", c, row, head, n, g, want[n]/sum)
			}
		}
	}
}
