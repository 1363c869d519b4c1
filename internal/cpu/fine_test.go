package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/quire-ai/quire/internal/tensor"
)

// fineProduct multiplies normally distributed rows with a matrix of two parts and a bias.
func fineProduct(t *testing.T, d *Device, rows, cols int, fine bool) (got []float32, exact []float64) {
	t.Helper()
	const outputs = 41 // 16 + 25: the last panels of both parts are narrow or whole
	r := seeded(uint64(rows*1000 + cols))
	first, second := randomWeights(r, tensor.Q4_1, 16, cols), randomWeights(r, tensor.Q8_0, outputs-16, cols)
	m, err := d.PackRows(cols, Part{tensor.Q4_1, 16, first}, Part{tensor.Q8_0, outputs - 16, second})
	if err != nil {
		t.Fatal(err)
	}
	m.Bias = normals(r, outputs)
	x, err := d.NewActs(rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	split, err := d.NewActs(2*rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	x.SetRows(rows)
	copy(x.F32, normals(r, rows*cols))
	got = make([]float32, rows*outputs)
	if fine {
		d.MatMulFine(got, m, x, split)
	} else {
		d.MatMul(got, m, x)
	}
	w := make([]float32, outputs*cols)
	if err := tensor.Dequantize(tensor.Q4_1, w[:16*cols], first); err != nil {
		t.Fatal(err)
	}
	if err := tensor.Dequantize(tensor.Q8_0, w[16*cols:], second); err != nil {
		t.Fatal(err)
	}
	for row := range rows {
		for o := range outputs {
			sum := float64(m.Bias[o])
			for k, v := range x.Row(row) {
				sum += float64(v) * float64(w[o*cols+k])
			}
			exact = append(exact, sum)
		}
	}
	return got, exact
}

func TestMatMulFineIsFiner(t *testing.T) {
	d := newDevice(t, Generic, 2)
	worst := func(fine bool) float64 {
		got, exact := fineProduct(t, d, 20, 96, fine)
		w := 0.0
		for i, v := range exact {
			w = max(w, math.Abs(float64(got[i])-v))
		}
		return w
	}
	// The second rounding is to 1/254 of the first; accumulation in float32 adds its own.
	if coarse, fine := worst(false), worst(true); !(fine < coarse/100) {
		t.Errorf("largest error %g by MatMul, %g by MatMulFine; want a hundredth", coarse, fine)
	}
}

func TestLevelsMatMulFine(t *testing.T) {
	generic := newDevice(t, Generic, 1)
	for _, level := range fastLevels(t) {
		d := newDevice(t, level, 2)
		for rows := 1; rows <= 40; rows++ {
			cols := 32 * (1 + rows%7)
			got, _ := fineProduct(t, d, rows, cols, true)
			want, _ := fineProduct(t, generic, rows, cols, true)
			if s := differ(got, want); s != "" {
				t.Errorf("%v, %d rows of %d: %s", level, rows, cols, s)
			}
		}
	}
}

// TestMatMulFineOfFloats shows that float parts are not split: they would lose by it.
func TestMatMulFineOfFloats(t *testing.T) {
	for _, parts := range [][]tensor.DType{{tensor.F32}, {tensor.Q8_0, tensor.F16}} {
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			d := newDevice(t, Generic, 1)
			r := seeded(5)
			var stack []Part
			for _, typ := range parts {
				stack = append(stack, Part{typ, 16, randomWeights(r, typ, 16, 64)})
			}
			m, err := d.PackRows(64, stack...)
			if err != nil {
				t.Fatal(err)
			}
			x, err := d.NewActs(3, 64)
			if err != nil {
				t.Fatal(err)
			}
			x.SetRows(3)
			copy(x.F32, normals(r, 3*64))
			got, want := make([]float32, 3*m.Rows), make([]float32, 3*m.Rows)
			d.MatMul(want, m, x)
			d.MatMulFine(got, m, x, nil)
			if !slices.Equal(got, want) {
				t.Errorf("MatMulFine differs from MatMul")
			}
		})
	}
}
