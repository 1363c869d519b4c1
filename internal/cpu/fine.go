package cpu

import "fmt"

// MatMulFine is MatMul with activations of 15 bits instead of 8, for matrices whose rounding matters more than their
// time: x is taken as its int8 form and the int8 form of what that lost, and the product is the sum of both's
// (docs/arithmetic.md §5). Both go through a panel together, so weights are read once. split is working memory of twice
// as many rows. A matrix with a part in floats, which lose nothing, is multiplied as by MatMul.
func (d *Device) MatMulFine(dst []float32, m *Matrix, x, split *Acts) {
	if m.hasFloats() {
		d.MatMul(dst, m, x)
		return
	}
	if x.Cols != m.Cols || split.Cols != m.Cols || len(dst) < x.rows*m.Rows {
		panic(fmt.Sprintf("fine matmul: %d × %d activations, %d columns to split them, %d × %d weights, room for %d results",
			x.rows, x.Cols, split.Cols, m.Rows, m.Cols, len(dst)))
	}
	if x.rows == 0 {
		return
	}
	split.SetRows(2 * x.rows)
	d.split = splitJob{d: d, x: x, split: split, perChunk: tileRows / 2} // whole tiles of split: see quantizeJob
	d.pool.do((x.rows+d.split.perChunk-1)/d.split.perChunk, &d.split)
	split.quantized = true
	j := &d.matmul
	*j = matmulJob{d: d, dst: dst, m: m, x: split, fine: true, perChunk: panelsPerChunk(m.panels, d.Threads())}
	d.pool.do((m.panels+j.perChunk-1)/j.perChunk, j)
}

func (m *Matrix) hasFloats() bool {
	for i := range m.parts {
		if m.parts[i].layout.kind.isFloat() {
			return true
		}
	}
	return false
}

// pairs adds the results of two rows for each row of dst.
func (j *matmulJob) pairs(result []float32, stride int, t tiles, column, width int) {
	for r := 0; r < t.rows; r += 2 {
		sum := result[r*stride:][:width]
		j.d.kernels.add(sum, result[(r+1)*stride:][:width])
		j.finish(j.dst[(t.row+r)/2*j.m.Rows+column:][:width], sum, column)
	}
}

// splitJob fills the rows of split in pairs: a row of x, and what its int8 form lost.
type splitJob struct {
	d        *Device
	x, split *Acts
	perChunk int
}

func (j *splitJob) run(_, chunk int) {
	for r := chunk * j.perChunk; r < min((chunk+1)*j.perChunk, j.x.rows); r++ {
		copy(j.split.Row(2*r), j.x.Row(r))
		j.d.kernels.quantize(j.split, 2*r, 0, j.split.blocks())
		lostRow(j.split.Row(2*r+1), j.split, 2*r)
		j.d.kernels.quantize(j.split, 2*r+1, 0, j.split.blocks())
	}
}

// lostRow sets dst to row r of x less its int8 form: x - scale·q, each operation rounded.
func lostRow(dst []float32, x *Acts, r int) {
	row := x.Row(r)
	for b := 0; b*blockCols < len(row); b++ {
		at := x.place(r, b)
		scale, from := x.scale[at], b*blockCols
		q := x.q[at*blockCols:][:min(blockCols, len(row)-from)]
		out, in := dst[from:][:len(q)], row[from:][:len(q)]
		for i, v := range q {
			out[i] = sub32(in[i], mul32(scale, float32(v)))
		}
	}
}
