package model

import (
	"testing"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/testmodel"
)

// BenchmarkPrefill stands for a prompt of 512 tokens computed in one step, BenchmarkDecode for steps of one token of 1
// and of 16 requests, both of SmolLM2-135M on one thread.
func BenchmarkPrefill(b *testing.B) {
	m := newMachine(b, open(b, testmodel.Path(b, smolLM2)), setup{level: fastest(), maxRows: 512, tokens: 512})
	ids := randomIDs(512)
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Forward(&Batch{Tokens: ids, Seqs: [][]cpu.Seq{{{Blocks: m.tables[0], Rows: 512}}}, Want: []int32{511}}); err != nil {
			b.Fatal(err)
		}
		m.Stepper.Logits(0, 1)
	}
	b.ReportMetric(512*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}

func BenchmarkDecode1(b *testing.B)  { benchmarkDecode(b, 1) }
func BenchmarkDecode16(b *testing.B) { benchmarkDecode(b, 16) }

func benchmarkDecode(b *testing.B, sequences int) {
	m := newMachine(b, open(b, testmodel.Path(b, smolLM2)), setup{level: fastest(), tokens: sequences * 64})
	batch := &Batch{Tokens: randomIDs(sequences), Seqs: make([][]cpu.Seq, 1)}
	for i := range sequences { // each at position 40 of its own blocks
		batch.Seqs[0] = append(batch.Seqs[0], cpu.Seq{Blocks: m.tables[0][4*i:][:4], First: i, Rows: 1, Pos: 40})
		batch.Want = append(batch.Want, int32(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Forward(batch); err != nil {
			b.Fatal(err)
		}
		m.Stepper.Logits(0, sequences)
	}
	b.ReportMetric(float64(sequences)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}
