package cpu

import (
	"fmt"

	"github.com/quire-ai/quire/internal/tensor"
)

// RMSNorm sets dst's rows to the normalised rows of src, [dst.Rows][dst.Cols], times weight.
func (d *Device) RMSNorm(dst *Acts, src, weight []float32, eps float32) {
	need("norm", src, dst.rows*dst.Cols)
	need("norm weight", weight, dst.Cols)
	d.rowsDo(rowsJob{op: opNorm, acts: dst, rows: dst.rows, width: dst.Cols, x: src, weight: weight, eps: eps})
}

// RMSNormAdd adds to each row of dst, [rows][width], the normalised row of src times weight. It destroys src.
func (d *Device) RMSNormAdd(dst, src, weight []float32, rows int, eps float32) {
	width := len(weight)
	need("norm", src, rows*width)
	need("norm", dst, rows*width)
	d.rowsDo(rowsJob{op: opNormAdd, dst: dst, rows: rows, width: width, x: src, weight: weight, eps: eps})
}

// NormHeads normalises heads in place: each row of x begins with heads × len(weight) values, rows are stride apart.
func (d *Device) NormHeads(x []float32, rows, stride, heads int, weight []float32, eps float32) {
	need("head norm", x, (rows-1)*stride+heads*len(weight))
	d.rowsDo(rowsJob{op: opNormHeads, rows: rows, x: x, stride: stride, heads: heads, width: len(weight), weight: weight, eps: eps})
}

// Add adds x to dst.
func (d *Device) Add(dst, x []float32) {
	need("add", x, len(dst))
	d.flat(rowsJob{op: opAdd, dst: dst, x: x}, len(dst))
}

// Scale multiplies x by factor.
func (d *Device) Scale(x []float32, factor float32) {
	d.flat(rowsJob{op: opScale, x: x, eps: factor}, len(x))
}

// Softcap sets x to limit·tanh(x/limit).
func (d *Device) Softcap(x []float32, limit float32) {
	d.flat(rowsJob{op: opSoftcap, x: x, eps: limit}, len(x))
}

func need(what string, x []float32, n int) {
	if len(x) < n {
		panic(fmt.Sprintf("%s: %d values, want %d", what, len(x), n))
	}
}

// rowOp is what a rowsJob does to a row.
type rowOp uint8

const (
	opNorm rowOp = iota
	opNormAdd
	opNormHeads
	opRotate
	opAdd
	opScale
	opSoftcap
)

// rowsJob is work on rows that do not depend on one another.
type rowsJob struct {
	d           *Device
	op          rowOp
	acts        *Acts
	dst, x      []float32
	weight      []float32
	eps         float32 // or the factor or the limit
	rope        *RopeRows
	rows, width int
	stride      int
	heads       int
	perChunk    int
}

const (
	flatWidth   = 4096 // values of a row where the operation knows none
	rowsPerCore = 4    // chunks a worker gets, at least
)

// flat runs an operation on single values as rows of flatWidth.
func (d *Device) flat(j rowsJob, n int) {
	j.width, j.rows = flatWidth, (n+flatWidth-1)/flatWidth
	d.rowsDo(j)
}

func (d *Device) rowsDo(j rowsJob) {
	j.d = d
	j.perChunk = max(1, min(16, j.rows/(rowsPerCore*d.Threads())))
	d.rows = j
	d.pool.do((j.rows+j.perChunk-1)/j.perChunk, &d.rows)
}

func (j *rowsJob) run(_, chunk int) {
	for r := chunk * j.perChunk; r < min((chunk+1)*j.perChunk, j.rows); r++ {
		j.row(r)
	}
}

func (j *rowsJob) row(r int) {
	k := j.d.kernels
	switch j.op {
	case opNorm:
		k.norm(j.acts.Row(r), j.x[r*j.width:][:j.width], j.weight, j.eps)
	case opNormAdd:
		src := j.x[r*j.width:][:j.width]
		k.norm(src, src, j.weight, j.eps)
		k.add(j.dst[r*j.width:][:j.width], src)
	case opNormHeads:
		for h := range j.heads {
			head := j.x[r*j.stride+h*j.width:][:j.width]
			k.norm(head, head, j.weight, j.eps)
		}
	case opRotate:
		cos, sin := j.rope.row(r)
		for h := range j.heads {
			k.rotate(j.x[r*j.stride+h*j.width:][:j.width], cos, sin, j.rope.rope.interleaved)
		}
	case opAdd:
		end := min((r+1)*j.width, len(j.dst))
		k.add(j.dst[r*j.width:end], j.x[r*j.width:end])
	case opScale:
		k.scale(j.x[r*j.width:min((r+1)*j.width, len(j.x))], j.eps)
	case opSoftcap:
		k.softcap(j.x[r*j.width:min((r+1)*j.width, len(j.x))], j.eps)
	}
}

// normRow is RMSNorm (docs/arithmetic.md §2): the sum of squares in 16 lanes, then
// dst = (x · 1/sqrt(sum/n + eps)) · weight, each operation rounded.
func normRow(dst, x, weight []float32, eps float32) {
	var sums [lanes]float32
	weighRow(dst, x, weight, normInverse(&sums, x, len(x), eps))
}

// normInverse adds the squares of x to sums and returns 1/sqrt(sum/n + eps).
func normInverse(sums *[lanes]float32, x []float32, n int, eps float32) float32 {
	for i, v := range x {
		sums[i%lanes] = fma32(v, v, sums[i%lanes])
	}
	return 1 / sqrt32(add32(sumTree(sums)/float32(n), eps))
}

func weighRow(dst, x, weight []float32, factor float32) {
	for i, v := range x {
		dst[i] = mul32(mul32(v, factor), weight[i])
	}
}

func siluRow(dst, gate, up []float32) {
	for i, g := range gate {
		dst[i] = mul32(silu(g), up[i])
	}
}

func geluRow(dst, gate, up []float32) {
	for i, g := range gate {
		dst[i] = mul32(gelu(g), up[i])
	}
}

func addRow(dst, x []float32) {
	for i, v := range x {
		dst[i] = add32(dst[i], v)
	}
}

func scaleRow(x []float32, factor float32) {
	for i, v := range x {
		x[i] = mul32(v, factor)
	}
}

func softcapRow(x []float32, limit float32) {
	for i, v := range x {
		x[i] = softcap(v, limit)
	}
}

// mixRow is dst = x·b + dst·a, where dst·a is rounded.
func mixRow(dst, x []float32, a, b float32) {
	for i, v := range dst {
		dst[i] = fma32(x[i], b, mul32(v, a))
	}
}

func divideRow(dst, x []float32, divisor float32) {
	for i, v := range x {
		dst[i] = v / divisor
	}
}

// halfMax is the greatest finite half-precision number.
const halfMax = 65504

// halvesRow rounds to half precision, to nearest even; what is too large becomes ±halfMax, so that no infinity gets
// into the cache.
func halvesRow(dst []uint16, x []float32) {
	for i, v := range x {
		dst[i] = tensor.F32ToF16(min(max(v, -halfMax), halfMax))
	}
}
