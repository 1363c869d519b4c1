package cpu

import "fmt"

// MatMul sets dst, [x.Rows][m.Rows], to the product of x's rows and m, plus m's bias.
func (d *Device) MatMul(dst []float32, m *Matrix, x *Acts) { d.multiply(dst, m, x, false) }

// MatMulAdd adds the product of x's rows and m, with m's bias, to dst.
func (d *Device) MatMulAdd(dst []float32, m *Matrix, x *Acts) { d.multiply(dst, m, x, true) }

func (d *Device) multiply(dst []float32, m *Matrix, x *Acts, add bool) {
	if x.Cols != m.Cols || len(dst) < x.rows*m.Rows {
		panic(fmt.Sprintf("matmul: %d × %d activations, %d × %d weights, room for %d results", x.rows, x.Cols, m.Rows,
			m.Cols, len(dst)))
	}
	if x.rows == 0 {
		return
	}
	for i := range m.parts {
		if !m.parts[i].layout.kind.isFloat() {
			d.Quantize(x)
			break
		}
	}
	j := &d.matmul
	*j = matmulJob{d: d, dst: dst, m: m, x: x, add: add}
	j.perChunk = panelsPerChunk(m.panels, d.Threads())
	d.pool.do((m.panels+j.perChunk-1)/j.perChunk, j)
}

// panelsPerChunk gives each worker several chunks, so that a late one leaves its share to the others.
func panelsPerChunk(panels, threads int) int { return max(1, min(8, panels/(4*threads))) }

// matmulJob is a product, in chunks of panels.
type matmulJob struct {
	d        *Device
	dst      []float32
	m        *Matrix
	x        *Acts
	add      bool
	perChunk int
}

func (j *matmulJob) run(worker, chunk int) {
	for i := chunk * j.perChunk; i < min((chunk+1)*j.perChunk, j.m.panels); i++ {
		j.panel(worker, j.m.panel(i))
	}
}

// panel multiplies one panel with all rows. The product goes to the worker's scratch memory when it cannot go to its
// place: a panel of fewer than 16 rows, or a sum with what is there.
func (j *matmulJob) panel(worker int, p panel) {
	for row := 0; row < j.x.rows; row += tileRows {
		t := tile{acts: j.x, row: row, height: min(tileRows, j.x.rows-row)}
		dst, stride := j.dst[row*j.m.Rows+p.column:], j.m.Rows
		direct := p.rows == lanes && !j.add && j.m.Bias == nil
		if !direct {
			dst, stride = j.d.buffer(worker, tileRows*lanes), lanes
		}
		if p.layout.kind.isFloat() {
			w := floats{kind: p.layout.kind, data: p.numbers, stride: lanes}
			j.d.kernels.gemmFloats(dst, stride, w, j.x.F32[row*j.x.Cols:], j.x.Cols, t.height, j.x.Cols, false)
		} else {
			j.d.kernels.gemmBlocks(dst, stride, p, t, j.x.Cols)
		}
		if direct {
			continue
		}
		for r := range t.height {
			j.finish(j.dst[(row+r)*j.m.Rows+p.column:][:p.rows], dst[r*stride:][:p.rows], p.column)
		}
	}
}

// finish moves a row's 16 results to their place: out = (out +) (result + bias).
func (j *matmulJob) finish(out, result []float32, column int) {
	for i, v := range result {
		if j.m.Bias != nil {
			v = add32(v, j.m.Bias[column+i])
		}
		if j.add {
			v = add32(out[i], v)
		}
		out[i] = v
	}
}
