package cpu

import "fmt"

// tileRows is the greatest number of activation rows a kernel takes at once. Quantised activations are stored by
// tiles of so many rows, the last one lower.
const tileRows = 16

// blockCols is the number of columns that share a scale.
const blockCols = 32

// Acts holds activations, rows of cols values: the input of a matrix product. F32 is filled by the caller or by a
// Device's method; the int8 form that block formats need is made from it on demand.
//
// Owned by the caller of the Device's methods.
type Acts struct {
	F32  []float32 // [row][col], of Rows rows
	Cols int

	rows      int
	maxRows   int
	quantized bool // the planes below match F32

	// Quantised activations (docs/arithmetic.md §4), as [tile][block][row of the tile]…, a tile having up to 16 rows:
	q       []int8    // …[32 columns]
	scale   []float32 // value = scale·q
	sum     []float32 // scale · the sum of the block's q, rounded once
	minus8  []int32   // -8 · the sum of the block's q: what unsigned 4-bit weights have too much
	minus16 []int32   // the same of 5-bit weights
	minus32 []int32   // …[2 halves]: -32 · the sum of 16 q
	bias    []int32   // -128 · the sum of the block's q: of bytes
	all     []float32 // F32 of maxRows
}

// readAhead is how many bytes after a plane a kernel may read: those of a whole tile's block where the last is lower.
const readAhead = 2 * alignment

// NewActs returns activations of up to maxRows rows and cols columns, with no rows.
func (d *Device) NewActs(maxRows, cols int) (*Acts, error) {
	if maxRows < 1 || cols < 1 {
		return nil, fmt.Errorf("activations of %d × %d: not a size", maxRows, cols)
	}
	a := &Acts{Cols: cols, maxRows: maxRows}
	blocks := (cols + blockCols - 1) / blockCols * maxRows
	for _, plane := range []struct {
		bytes int
		set   func([]byte)
	}{
		{4 * maxRows * cols, func(b []byte) { a.all = float32s(b)[:maxRows*cols] }},
		{blockCols * blocks, func(b []byte) { a.q = int8s(b) }},
		{4 * blocks, func(b []byte) { a.scale = float32s(b) }},
		{4 * blocks, func(b []byte) { a.sum = float32s(b) }},
		{4 * blocks, func(b []byte) { a.minus8 = int32s(b) }},
		{4 * blocks, func(b []byte) { a.minus16 = int32s(b) }},
		{8 * blocks, func(b []byte) { a.minus32 = int32s(b) }},
		{4 * blocks, func(b []byte) { a.bias = int32s(b) }},
	} {
		b, err := d.memory.alloc(plane.bytes + readAhead)
		if err != nil {
			return nil, fmt.Errorf("activations of %d × %d: %w", maxRows, cols, err)
		}
		plane.set(b)
	}
	return a, nil
}

// SetRows says that the activations have n rows from now on, which are about to be written. It must be called before
// each writing of F32: it also forgets the quantised form.
func (a *Acts) SetRows(n int) {
	if n < 0 || n > a.maxRows {
		panic(fmt.Sprintf("activations: %d rows, room for %d", n, a.maxRows))
	}
	a.rows, a.quantized = n, false
	a.F32 = a.all[:n*a.Cols]
}

// Rows is the number of rows set last.
func (a *Acts) Rows() int { return a.rows }

// MaxRows is the number of rows there is room for.
func (a *Acts) MaxRows() int { return a.maxRows }

// Row returns row r of F32.
func (a *Acts) Row(r int) []float32 { return a.F32[r*a.Cols:][:a.Cols:a.Cols] }

// blocks is the number of blocks of a row.
func (a *Acts) blocks() int { return (a.Cols + blockCols - 1) / blockCols }

// place tells where block b of row r lies in the planes, counted in blocks.
func (a *Acts) place(r, b int) int {
	tile, height := r/tileRows, min(tileRows, a.rows-r/tileRows*tileRows)
	return tile*tileRows*a.blocks() + b*height + r%tileRows
}
