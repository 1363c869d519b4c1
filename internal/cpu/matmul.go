package cpu

import (
	"fmt"
	"unsafe"
)

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
	d.quantizeFor(m, x)
	j := &d.matmul
	*j = matmulJob{d: d, dst: dst, m: m, x: x, add: add}
	j.perChunk = panelsPerChunk(m.panels, d.Threads())
	d.pool.do((m.panels+j.perChunk-1)/j.perChunk, j)
}

// quantizeFor quantises x if any part of m wants it.
func (d *Device) quantizeFor(m *Matrix, x *Acts) {
	for i := range m.parts {
		if !m.parts[i].layout.kind.isFloat() {
			d.Quantize(x)
			return
		}
	}
}

// panelsPerChunk returns how many panels to hand out at once: chunks that come out even among the workers, and several
// for each, so that a late one leaves its share to the others.
func panelsPerChunk(panels, threads int) int {
	const (
		most      = 8 // panels
		rounds    = 4 // chunks for each worker, if there are panels enough
		claimCost = 4 // chunks are claimed in the time of a quarter of a panel
	)
	best, least := 1, 0
	for n := 1; n <= most; n++ {
		chunks := (panels + n - 1) / n
		each := (chunks + threads - 1) / threads
		if n > 1 && each < rounds {
			break
		}
		if cost := each * (claimCost*n + 1); least == 0 || cost < least {
			best, least = n, cost
		}
	}
	return best
}

// matmulJob is a product, in chunks of panels.
type matmulJob struct {
	d        *Device
	dst      []float32
	m        *Matrix
	x        *Acts
	add      bool
	fine     bool // two rows of x belong to a row of dst: see MatMulFine
	perChunk int
}

func (j *matmulJob) run(worker, chunk int) {
	end := min((chunk+1)*j.perChunk, j.m.panels)
	for i := chunk * j.perChunk; i < end; {
		p := j.m.run(i, end)
		j.panels(worker, p)
		i += p.count
	}
}

// unpackBytes is the memory for unpacked panels, a part of the second level's cache; several at once save calls.
const unpackBytes = 128 << 10

// panels multiplies a run of panels with all rows.
func (j *matmulJob) panels(worker int, p panels) {
	group := j.group(p)
	for i := 0; i < p.count; i += group {
		j.tiles(worker, j.unpack(worker, 0, p.part(i, min(group, p.count-i))))
	}
}

// group is how many panels of a run to multiply at a time.
func (j *matmulJob) group(p panels) int {
	if !j.unpacks(p) {
		return p.count
	}
	return max(1, min(p.count, unpackBytes/p.layout.unpacked().numbersBytes(j.m.Cols)))
}

func (j *matmulJob) unpacks(p panels) bool {
	return j.d.kernels.unpacks(p.layout.kind, j.x.rows)
}

// unpack returns a group of panels as the product wants them. The worker has memory for two unpacked groups.
func (j *matmulJob) unpack(worker, which int, p panels) panels {
	if !j.unpacks(p) {
		return p
	}
	unpacked := p.layout.unpacked()
	size := unpacked.numbersBytes(j.m.Cols)
	half := max(unpackBytes, size)
	numbers := j.d.bytes(worker, 2*half)[which*half:]
	for n := range p.count {
		j.d.kernels.unpack(numbers[n*size:], p.layout, p.numbers[n*p.numbersStep:], j.m.Cols)
	}
	p.layout, p.numbers, p.numbersStep, p.near = unpacked, numbers, size, true
	return p
}

// rowsAtOnce is how many rows go through a run of panels together: their results stay in the cache until they have been
// moved to their place.
const rowsAtOnce = 4 * tileRows

// tiles multiplies a run of panels with all rows. The product goes to the worker's scratch memory when it cannot go to
// its place: a panel of fewer than 16 rows, or a sum with what is there.
func (j *matmulJob) tiles(worker int, p panels) {
	direct := p.rows == lanes && !j.add && j.m.Bias == nil && !j.fine
	for row := 0; row < j.x.rows; row += rowsAtOnce {
		t := tiles{acts: j.x, row: row, rows: min(rowsAtOnce, j.x.rows-row)}
		p.near = p.near || row > 0
		if direct {
			j.product(worker, j.dst[row*j.m.Rows+p.column:], j.m.Rows, p, t)
			continue
		}
		stride := p.count * lanes
		dst := j.d.buffer(worker, rowsAtOnce*stride)
		j.product(worker, dst, stride, p, t)
		if j.fine {
			j.pairs(dst, stride, t, p.column, p.width())
			continue
		}
		for r := range t.rows {
			j.finish(j.dst[(row+r)*j.m.Rows+p.column:][:p.width()], dst[r*stride:][:p.width()], p.column)
		}
	}
}

// product multiplies a run of panels with some rows.
func (j *matmulJob) product(worker int, dst []float32, stride int, p panels, t tiles) {
	if p.layout.kind.isFloat() {
		j.floats(worker, dst, stride, p, t)
	} else {
		j.d.kernels.gemmBlocks(dst, stride, p, t, j.x.Cols)
	}
}

// floats multiplies a run of float panels.
func (j *matmulJob) floats(worker int, dst []float32, stride int, p panels, t tiles) {
	w := floatPanels{
		kind: p.layout.kind, count: p.count, table: j.d.table(worker, p.count), segment: j.x.Cols, stride: lanes,
		fresh: !p.near,
	}
	for i := range w.table {
		w.table[i] = unsafe.Pointer(&p.numbers[i*p.numbersStep])
	}
	x := floatRows{x: j.x.F32[t.row*j.x.Cols:], stride: j.x.Cols, count: t.rows, k: j.x.Cols}
	j.d.kernels.gemmFloats(dst, stride, w, x)
}

// finish moves results of a row to their place: out = (out +) (result + bias).
func (j *matmulJob) finish(out, result []float32, column int) {
	if j.m.Bias != nil {
		j.d.kernels.add(result, j.m.Bias[column:][:len(result)])
	}
	if j.add {
		j.d.kernels.add(out, result)
		return
	}
	copy(out, result)
}
