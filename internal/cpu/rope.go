package cpu

import "math"

// RopeOptions describe a rotary embedding.
type RopeOptions struct {
	Frequencies []float64 // pair i of a head turns by Frequencies[i] radians a position; there are 2·len rotated values
	Magnitude   float64   // cosine and sine are multiplied by it (YaRN, long rope); 0 is 1
	Interleaved bool      // pairs are (2i, 2i+1), as in GGUF's llama; else (i, i + len)
}

// Rope is a rotary embedding, which depends on the model only. Read-only.
type Rope struct {
	frequency   []float64
	magnitude   float64
	interleaved bool
}

// NewRope makes a rotary embedding of frequencies that the caller computed alike on every processor, as the model
// package does: the table of a step is part of the arithmetic contract (docs/arithmetic.md §7).
func NewRope(o RopeOptions) *Rope {
	r := &Rope{frequency: o.Frequencies, magnitude: o.Magnitude, interleaved: o.Interleaved}
	if r.magnitude == 0 {
		r.magnitude = 1
	}
	return r
}

// RopeRows holds cosines and sines for the rows of a step, made once and used by every layer.
type RopeRows struct {
	rope  *Rope
	table []float32 // [row]{cos [Dims], sin [Dims]}: for each value of a head, the sine with its sign
	rows  int
}

// RopeRows sets t to the positions of the rows of seqs.
func (d *Device) RopeRows(t *RopeRows, r *Rope, seqs []Seq) {
	t.rope, t.rows = r, 0
	for _, s := range seqs {
		t.rows = max(t.rows, s.First+s.Rows)
	}
	dims := 2 * len(r.frequency)
	if need := 2 * dims * t.rows; cap(t.table) < need {
		t.table = make([]float32, need)
	}
	t.table = t.table[:2*dims*t.rows]
	for _, s := range seqs {
		for i := range s.Rows {
			cos, sin := t.row(s.First + i)
			r.fill(cos, sin, s.Pos+i)
		}
	}
}

// fill sets a row of the table.
func (r *Rope) fill(cos, sin []float32, pos int) {
	for k, f := range r.frequency {
		sn, cs := sincos(float64(pos) * f)
		a, b := r.pair(k)
		cos[a], sin[a] = float32(cs*r.magnitude), float32(-sn*r.magnitude)
		cos[b], sin[b] = cos[a], -sin[a]
	}
}

// pair returns the values of a head that frequency k rotates.
func (r *Rope) pair(k int) (a, b int) {
	if r.interleaved {
		return 2 * k, 2*k + 1
	}
	return k, k + len(r.frequency)
}

func (t *RopeRows) row(r int) (cos, sin []float32) {
	dims := 2 * len(t.rope.frequency)
	row := t.table[2*dims*r:][:2*dims]
	return row[:dims], row[dims:]
}

// Rope rotates heads in place: each row of x begins with heads × headDim values, rows are stride apart.
func (d *Device) Rope(x []float32, stride, heads, headDim int, t *RopeRows) {
	need("rope", x, (t.rows-1)*stride+heads*headDim)
	d.rowsDo(rowsJob{op: opRotate, rows: t.rows, x: x, stride: stride, heads: heads, width: headDim, rope: t})
}

// rotateHead rotates a head (docs/arithmetic.md §7): each value x becomes x·cos + partner·sin, where the second
// product is rounded, the sine has the formula's sign, and the partner is the neighbour or half the dimensions away.
func rotateHead(head, cos, sin []float32, interleaved bool) {
	step, half := 1, len(cos)/2
	if interleaved {
		step, half = 2, 1
	}
	for i := 0; i < len(cos)/2*step; i += step {
		a, b := head[i], head[i+half]
		head[i] = fma32(a, cos[i], mul32(b, sin[i]))
		head[i+half] = fma32(b, cos[i+half], mul32(a, sin[i+half]))
	}
}

// π/2 in three parts, and the coefficients of the polynomials for |x| ≤ π/4 (FreeBSD's msun, k_sin.c and k_cos.c).
const (
	piHalf1 = 1.57079632679489655800e+00
	piHalf2 = 6.12323399573676603587e-17
	piHalf3 = -1.49738490485916983303e-33
)

// sincos returns the sine and the cosine of x ≥ 0, below 2^30, to about 1e-16. It is written with math.FMA, which every
// processor computes alike, because package math may be compiled to other roundings on other processors.
func sincos(x float64) (sin, cos float64) {
	n := math.RoundToEven(x * (2 / math.Pi))
	r := math.FMA(-n, piHalf1, x)
	r = math.FMA(-n, piHalf2, r)
	r = math.FMA(-n, piHalf3, r)
	z := float64(r * r)
	s := horner(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
		-1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01)
	s = math.FMA(float64(r*z), s, r)
	c := horner(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
		2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02)
	c = math.FMA(float64(z*z), c, math.FMA(-0.5, z, 1))
	switch int64(n) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	}
	return -c, s
}

// horner is a polynomial in x, highest coefficient first.
func horner(x float64, coefficients ...float64) float64 {
	sum := coefficients[0]
	for _, c := range coefficients[1:] {
		sum = math.FMA(sum, x, c)
	}
	return sum
}
