package cpu

import (
	"fmt"
	"testing"

	"github.com/quire-ai/quire/internal/tensor"
)

// Products of one worker with weights that stay in the second level's cache, as in prefill, for a layer of 896 columns
// (Qwen2.5-0.5B): decode is 1 row, batches are 4 to 16, prefill is 128.
func BenchmarkMatMul(b *testing.B) {
	for _, level := range Levels()[1:] {
		d := newDevice(b, level, 1)
		for _, typ := range packTypes {
			for _, rows := range []int{1, 2, 4, 8, 16, 128} {
				benchmarkMatMul(b, d, typ, rows, 256, 1024, 1)
			}
		}
	}
}

// Products with weights that come from memory, which is what decoding a model beyond the caches does.
func BenchmarkMatMulStreamed(b *testing.B) {
	for _, level := range Levels()[1:] {
		d := newDevice(b, level, 1)
		for _, typ := range packTypes {
			for _, rows := range []int{1, 8} {
				benchmarkMatMul(b, d, typ, rows, 4096, 4864/256*256, 256<<20)
			}
		}
	}
}

// benchmarkMatMul multiplies with as many matrices in turn as fill the given bytes.
func benchmarkMatMul(b *testing.B, d *Device, typ tensor.DType, rows, outputs, cols, bytes int) {
	b.Run(fmt.Sprintf("%v/%v/rows=%d", d.Level(), typ, rows), func(b *testing.B) {
		src := randomWeights(seeded(1), typ, outputs, cols)
		var ms []*Matrix
		for n := 0; n < bytes; {
			m, err := d.Pack(typ, outputs, cols, src)
			if err != nil {
				b.Fatal(err)
			}
			ms = append(ms, m)
			n += m.Bytes()
		}
		x, err := d.NewActs(rows, cols)
		if err != nil {
			b.Fatal(err)
		}
		x.SetRows(rows)
		copy(x.F32, normals(seeded(2), rows*cols))
		out := make([]float32, rows*outputs)
		n := 0
		for b.Loop() {
			d.MatMul(out, ms[n%len(ms)], x)
			n++
		}
		seconds := b.Elapsed().Seconds() / float64(n)
		b.ReportMetric(2*float64(rows*outputs*cols)/seconds/1e9, "Gop/s")
		b.ReportMetric(float64(ms[0].Bytes())/seconds/1e9, "GB/s")
		b.ReportMetric(0, "ns/op")
	})
}
