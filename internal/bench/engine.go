package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/model"
)

// EngineOptions are the tests of an engine benchmark, as in llama-bench and llama-batched-bench: every prompt length,
// and every generation length with every batch, at every depth.
type EngineOptions struct {
	Prompts []int // tokens computed in one sequence, in chunks of Chunk
	Gens    []int // tokens generated in each sequence of a batch, one a step
	Batches []int
	Depths  []int // tokens that are in each sequence's cache before
	Chunk   int   // rows of a prefill step
	Repeats int
	Peak    *cpu.Peak // what the machine can do at best, if measured
}

// EngineRow is the result of one test.
type EngineRow struct {
	Prompt  int     `json:"n_prompt"`
	Gen     int     `json:"n_gen"`
	Batch   int     `json:"batch"`
	Depth   int     `json:"depth"`
	Threads int     `json:"threads"`
	Level   string  `json:"level"`
	Speed   float64 `json:"tokens_per_second"` // of the fastest repeat
	Mean    float64 `json:"tokens_per_second_mean"`
	Spread  float64 `json:"tokens_per_second_stddev"`
	GBps    float64 `json:"gigabytes_per_second"` // weights read, at Speed
	Gops    float64 `json:"gigaops_per_second"`   // multiplications and additions with weights, at Speed

	GBpsShare float64 `json:"gigabytes_share,omitempty"` // of the peak, if that was measured: of memory
	GopsShare float64 `json:"gigaops_share,omitempty"`   // of byte operations
}

// Name is the test in llama-bench's words.
func (r EngineRow) Name() string {
	name := fmt.Sprintf("pp%d", r.Prompt)
	if r.Gen > 0 {
		name = fmt.Sprintf("tg%d", r.Gen)
		if r.Batch > 1 {
			name += fmt.Sprintf(" b%d", r.Batch)
		}
	}
	if r.Depth > 0 {
		name += fmt.Sprintf(" @ d%d", r.Depth)
	}
	return name
}

// blockSize is the cache's, in tokens.
const blockSize = 16

// Engine runs the tests one by one and hands each result to report. It uses the model's forward pass directly, without
// the scheduler; tokens are made up, since their choice does not matter for the time.
func Engine(ctx context.Context, m *model.Model, d *cpu.Device, o EngineOptions, report func(EngineRow)) error {
	for _, depth := range o.Depths {
		for _, n := range o.Prompts {
			if err := engineTest(ctx, m, d, o, EngineRow{Prompt: n, Batch: 1, Depth: depth}, report); err != nil {
				return err
			}
		}
		for _, n := range o.Gens {
			for _, b := range o.Batches {
				if err := engineTest(ctx, m, d, o, EngineRow{Gen: n, Batch: b, Depth: depth}, report); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func engineTest(ctx context.Context, m *model.Model, d *cpu.Device, o EngineOptions, row EngineRow, report func(EngineRow)) (err error) {
	if row.Prompt+row.Gen == 0 {
		return nil
	}
	e := &engine{m: m, chunk: o.Chunk, batch: row.Batch}
	perSeq := (row.Depth + row.Prompt + row.Gen + blockSize - 1) / blockSize
	groups := len(m.CacheGroups)
	if e.kv, err = cpu.NewKV(m.KVShape(blockSize), perSeq*row.Batch*groups); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.kv.Close()) }()
	if e.step, err = m.NewStepper(e.kv, max(o.Chunk, row.Batch)); err != nil {
		return err
	}
	e.tables, e.work.Seqs = make([][][]int32, row.Batch), make([][]cpu.Seq, groups)
	for i := range e.tables {
		e.tables[i] = make([][]int32, groups)
		for b := range perSeq * groups { // interleaved, as in a busy pool
			e.tables[i][b%groups] = append(e.tables[i][b%groups], int32(b*row.Batch+i))
		}
		if err := e.prefill(i, row.Depth); err != nil {
			return err
		}
	}
	var speeds []float64
	for range o.Repeats + 1 { // the first run warms up
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		if err := e.run(row); err != nil {
			return err
		}
		speeds = append(speeds, float64((row.Prompt+row.Gen)*row.Batch)/time.Since(start).Seconds())
	}
	row.Threads, row.Level = d.Threads(), d.Level().String()
	row.measure(m, speeds[1:], o)
	report(row)
	return nil
}

// measure sets the results from the speeds of the repeats.
func (r *EngineRow) measure(m *model.Model, speeds []float64, o EngineOptions) {
	var sum, squares float64
	for _, v := range speeds {
		r.Speed = max(r.Speed, v)
		sum += v
	}
	n := float64(len(speeds))
	r.Mean = sum / n
	for _, v := range speeds {
		squares += (v - r.Mean) * (v - r.Mean)
	}
	r.Spread = math.Sqrt(squares / n)
	perStep := float64(r.Batch)
	if r.Gen == 0 {
		perStep = float64(min(o.Chunk, r.Prompt))
	}
	r.GBps = r.Speed / perStep * float64(m.WeightBytes) / 1e9
	weights := layerWeights(m)
	if r.Gen > 0 {
		weights += float64(m.Hidden * m.Vocab)
	}
	r.Gops = 2 * r.Speed * weights / 1e9
	if o.Peak != nil {
		r.GBpsShare, r.GopsShare = r.GBps/o.Peak.GBps, r.Gops/o.Peak.GopsInt
	}
}

// layerWeights is the number of weights a token is multiplied with, without the output head.
func layerWeights(m *model.Model) float64 {
	return float64(m.Layers) * float64(m.Hidden) * float64(2*m.QRows()+2*m.KVRows()+3*m.FFN)
}

// engine is a model at work on a batch of sequences.
type engine struct {
	m      *model.Model
	kv     *cpu.KV
	step   *model.Stepper
	chunk  int
	batch  int
	tables [][][]int32 // [sequence][cache group]: the block table
	work   model.Batch
}

// run does one repeat: from the same depth each time.
func (e *engine) run(row EngineRow) error {
	if row.Prompt > 0 {
		return e.prefillFrom(0, row.Depth, row.Prompt)
	}
	for i := range row.Gen {
		e.empty()
		for n := range e.tables {
			e.locate(n, cpu.Seq{First: n, Rows: 1, Pos: row.Depth + i})
			e.work.Tokens = append(e.work.Tokens, token(n, row.Depth+i, e.m.Vocab))
			e.work.Want = append(e.work.Want, int32(n))
		}
		if err := e.forward(); err != nil {
			return err
		}
	}
	return nil
}

// prefill computes the first n tokens of a sequence.
func (e *engine) prefill(seq, n int) error { return e.prefillFrom(seq, 0, n) }

func (e *engine) prefillFrom(seq, from, n int) error {
	for pos := from; pos < from+n; pos += e.chunk {
		rows := min(e.chunk, from+n-pos)
		e.empty()
		for i := range rows {
			e.work.Tokens = append(e.work.Tokens, token(seq, pos+i, e.m.Vocab))
		}
		e.locate(seq, cpu.Seq{Rows: rows, Pos: pos})
		e.work.Want = append(e.work.Want, int32(rows-1))
		if err := e.forward(); err != nil {
			return err
		}
	}
	return nil
}

// empty begins a step.
func (e *engine) empty() {
	e.work.Tokens, e.work.Want = e.work.Tokens[:0], e.work.Want[:0]
	for g := range e.work.Seqs {
		e.work.Seqs[g] = e.work.Seqs[g][:0]
	}
}

// locate adds rows of a sequence to the step.
func (e *engine) locate(seq int, s cpu.Seq) {
	for g, blocks := range e.tables[seq] {
		s.Blocks = blocks
		e.work.Seqs[g] = append(e.work.Seqs[g], s)
	}
}

// forward runs a step and computes the logits of the wanted rows.
func (e *engine) forward() error {
	if err := e.step.Forward(&e.work); err != nil {
		return err
	}
	for i := 0; i < len(e.work.Want); i += model.LogitRows {
		e.step.Logits(i, min(model.LogitRows, len(e.work.Want)-i))
	}
	return nil
}

// token makes up the token at a position of a sequence.
func token(seq, pos, vocab int) int32 {
	return int32((uint64(seq)*1_000_003 + uint64(pos)*7919 + 13) % uint64(vocab))
}
