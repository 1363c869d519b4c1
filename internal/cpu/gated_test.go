package cpu

import (
	"testing"

	"github.com/quire-ai/quire/internal/tensor"
)

// A gated product is the product, then the gate, whatever the formats of the halves and the number of rows.
func TestMatMulGated(t *testing.T) {
	for _, level := range Levels() {
		d := newDevice(t, level, 2)
		for i, types := range [][2]tensor.DType{
			{tensor.Q4_1, tensor.Q4_1}, {tensor.Q4_K, tensor.Q6_K}, {tensor.Q5_0, tensor.F16}, {tensor.F32, tensor.F32},
		} {
			for _, rows := range []int{1, 5, 40} {
				const half, cols = 150, 256
				r := seeded(uint64(10*i + rows))
				m, err := d.PackRows(cols,
					Part{Type: types[0], Rows: half, Data: randomWeights(r, types[0], half, cols)},
					Part{Type: types[1], Rows: half, Data: randomWeights(r, types[1], half, cols)},
				)
				if err != nil {
					t.Fatal(err)
				}
				x, got, want := newActs(t, d, rows, cols), newActs(t, d, rows, half), newActs(t, d, rows, half)
				copy(x.F32, normals(r, rows*cols))
				both := make([]float32, rows*2*half)
				d.MatMul(both, m, x)
				for r := range rows {
					row := both[r*2*half:][:2*half]
					if rows == 5 {
						geluRow(want.Row(r), row[:half], row[half:])
					} else {
						siluRow(want.Row(r), row[:half], row[half:])
					}
				}
				gate := SiLU
				if rows == 5 {
					gate = GELUTanh
				}
				d.MatMulGated(got, m, x, gate)
				if s := differ(got.F32, want.F32); s != "" {
					t.Errorf("%v %v %d rows: %s", level, types, rows, s)
				}
			}
		}
	}
}

// newActs is activations of so many rows.
func newActs(t *testing.T, d *Device, rows, cols int) *Acts {
	t.Helper()
	x, err := d.NewActs(rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	x.SetRows(rows)
	return x
}
