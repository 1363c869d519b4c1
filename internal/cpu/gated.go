package cpu

import "fmt"

// Gate is the activation function of a gated feed-forward block.
type Gate uint8

// The gates there are.
const (
	SiLU     Gate = iota // x·sigmoid(x)
	GELUTanh             // GELU in its tanh form
)

// MatMulGated sets dst's rows to gate(g)·u, where g and u are the products of x's rows and the two halves of m: the
// gate, and what it lets through. m must be two parts of as many rows. The products go no further than the second
// level's cache, since a wide row of both would be written and read again for nothing.
func (d *Device) MatMulGated(dst *Acts, m *Matrix, x *Acts, gate Gate) {
	if len(m.parts) != 2 || m.parts[0].rows != m.parts[1].rows || m.Bias != nil {
		panic("gated matmul: weights are not two halves without a bias")
	}
	if x.Cols != m.Cols || dst.Cols != m.Rows/2 || dst.rows != x.rows {
		panic(fmt.Sprintf("gated matmul: %d × %d activations, %d × %d weights, %d × %d results", x.rows, x.Cols, m.Rows,
			m.Cols, dst.rows, dst.Cols))
	}
	if x.rows == 0 {
		return
	}
	d.quantizeFor(m, x)
	half := m.panels / 2
	d.gated = gatedJob{
		matmulJob: matmulJob{d: d, m: m, x: x, perChunk: panelsPerChunk(half, d.Threads())}, out: dst, gate: gate,
	}
	d.pool.do((half+d.gated.perChunk-1)/d.gated.perChunk, &d.gated)
}

// gatedJob is a gated product, in chunks of panels of the gate and the same ones of the other half.
type gatedJob struct {
	matmulJob
	out  *Acts
	gate Gate
}

func (j *gatedJob) run(worker, chunk int) {
	half := j.m.panels / 2
	end := min((chunk+1)*j.perChunk, half)
	for i := chunk * j.perChunk; i < end; {
		gate, up := j.m.run(i, end), j.m.run(half+i, half+end)
		group := min(j.group(gate), j.group(up))
		for n := 0; n < gate.count; n += group {
			some := min(group, gate.count-n)
			j.tiles(worker, j.unpack(worker, 0, gate.part(n, some)), j.unpack(worker, 1, up.part(n, some)))
		}
		i += gate.count
	}
}

// tiles multiplies a run of each half with all rows.
func (j *gatedJob) tiles(worker int, gate, up panels) {
	stride, width := gate.count*lanes, gate.width()
	b := j.d.buffer(worker, 2*rowsAtOnce*stride)
	g, u := b[:rowsAtOnce*stride], b[rowsAtOnce*stride:]
	for row := 0; row < j.x.rows; row += rowsAtOnce {
		t := tiles{acts: j.x, row: row, rows: min(rowsAtOnce, j.x.rows-row)}
		gate.near, up.near = gate.near || row > 0, up.near || row > 0
		j.product(worker, g, stride, gate, t)
		j.product(worker, u, stride, up, t)
		for r := range t.rows {
			out := j.out.Row(row + r)[gate.column:][:width]
			if j.gate == GELUTanh {
				j.d.kernels.gelu(out, g[r*stride:][:width], u[r*stride:][:width])
			} else {
				j.d.kernels.silu(out, g[r*stride:][:width], u[r*stride:][:width])
			}
		}
	}
}
