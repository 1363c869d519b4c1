package model

import (
	"fmt"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/tensor"
)

// LogitRows is the largest number of rows Logits takes at once: enough that a decode step of 32 requests reads the
// output head once.
const LogitRows = 32

// blockRows is how many rows go through a projection or a feed-forward block at once. It bounds the working memory,
// not the result: rows do not depend on one another there.
const blockRows = 256

// Batch is one step's work: the rows of all requests, one row a token. The sequences of the cache groups differ in their
// Blocks only. A block that lies wholly left of a group's window is never read: any id may stand for it.
type Batch struct {
	Tokens []int32     // [row], each in 0..Vocab-1
	Seqs   [][]cpu.Seq // [cache group]: the sequences the rows belong to, covering rows 0..len(Tokens)-1 in order
	Want   []int32     // rows whose logits are wanted, ascending
}

// Stepper computes steps: a model, the key-value memory, and working memory for a bounded number of rows. Owned by one
// goroutine, the owner of the Device; a step allocates nothing once the buffers have been used at their size.
type Stepper struct {
	m       *Model
	kv      *cpu.KV
	maxRows int

	x      []float32 // [maxRows][Hidden], the residual stream
	qkv    []float32 // [maxRows][QRows + 2·KVRows]
	y      []float32 // [maxRows][Hidden], what a block adds before its post norm; nil without post norms
	logits []float32 // [LogitRows][Vocab]

	heads  *cpu.Acts // [maxRows][QRows], attention's result
	normed *cpu.Acts // [blockRows][Hidden]
	split  *cpu.Acts // [2·blockRows][Hidden], for MatMulFine
	act    *cpu.Acts // [blockRows][FFN]

	global, local cpu.RopeRows
	batch         *Batch
	wanted        int                     // rows of x that hold wanted rows after Forward
	embed         func(worker, chunk int) // embedRow, kept so that a step makes no closure
	embedErr      error
}

// NewStepper makes working memory for steps of up to maxRows rows. The cache's shape must be KVShape's.
func (m *Model) NewStepper(kv *cpu.KV, maxRows int) (*Stepper, error) {
	if want := m.KVShape(kv.Shape().BlockSize); kv.Shape() != want {
		return nil, fmt.Errorf("model step: key-value cache of shape %+v, want %+v", kv.Shape(), want)
	}
	c, block := m.Config, min(blockRows, maxRows)
	s := &Stepper{
		m: m, kv: kv, maxRows: maxRows,
		x:      make([]float32, maxRows*c.Hidden),
		qkv:    make([]float32, maxRows*(c.QRows()+2*c.KVRows())),
		logits: make([]float32, min(LogitRows, maxRows)*c.Vocab),
	}
	if c.arch.postNorms {
		s.y = make([]float32, maxRows*c.Hidden)
	}
	for _, a := range []struct {
		acts       **cpu.Acts
		rows, cols int
	}{{&s.heads, maxRows, c.QRows()}, {&s.normed, block, c.Hidden}, {&s.split, 2 * block, c.Hidden}, {&s.act, block, c.FFN}} {
		var err error
		if *a.acts, err = m.dev.NewActs(a.rows, a.cols); err != nil {
			return nil, fmt.Errorf("model step: %w", err)
		}
	}
	s.embed = s.embedRow
	return s, nil
}

// Forward runs the step up to the last hidden states of the wanted rows. It writes keys and values of all rows of a
// layer before any attention of that layer, so sequences that share a prefix may be computed in one step.
func (s *Stepper) Forward(b *Batch) error {
	m, rows := s.m, len(b.Tokens)
	s.wanted = 0
	if rows == 0 {
		return nil
	}
	if rows > s.maxRows {
		return fmt.Errorf("model step of %d rows, limit %d", rows, s.maxRows)
	}
	if len(b.Seqs) != len(m.CacheGroups) {
		return fmt.Errorf("model step: sequences for %d cache groups, the model has %d", len(b.Seqs), len(m.CacheGroups))
	}
	if err := s.embedRows(b); err != nil {
		return err
	}
	m.dev.RopeRows(&s.global, m.global, b.Seqs[0])
	if m.local != m.global {
		m.dev.RopeRows(&s.local, m.local, b.Seqs[0])
	}
	for i := range m.layers {
		w := &m.layers[i]
		s.attend(w, m.places[i].layer, b.Seqs[m.places[i].group], rows)
		if i == len(m.layers)-1 {
			rows = s.keepWanted(b.Want)
		}
		s.project(s.x[:rows*m.Hidden], w.out, s.heads, w.postAttn)
		for first := 0; first < rows; first += blockRows {
			s.feedForward(w, first, min(blockRows, rows-first))
		}
	}
	s.wanted = rows
	return nil
}

// embedRows looks the tokens up.
func (s *Stepper) embedRows(b *Batch) error {
	for row, id := range b.Tokens {
		if id < 0 || int(id) >= s.m.Vocab {
			return fmt.Errorf("model step: row %d has token %d, the vocabulary has %d", row, id, s.m.Vocab)
		}
	}
	s.batch, s.embedErr = b, nil
	s.m.dev.Run(len(b.Tokens), s.embed)
	return s.embedErr
}

func (s *Stepper) embedRow(_, row int) {
	c, t := s.m.Config, s.m.embedding
	rowBytes := len(t.Data) / c.Vocab
	dst := s.x[row*c.Hidden:][:c.Hidden]
	if err := tensor.Dequantize(t.Type, dst, t.Data[int(s.batch.Tokens[row])*rowBytes:][:rowBytes]); err != nil {
		s.embedErr = err // cannot happen: Load checked type and shape
		return
	}
	if c.EmbedScale != 1 {
		for i := range dst {
			dst[i] *= c.EmbedScale
		}
	}
}

// attend runs a layer up to the result of its heads: project, norm heads, turn, write keys and values, attend. Its keys and
// values are those of layer index of the sequences' blocks.
//
// Queries, keys and values are projected from finer activations than the rest: their rounding makes more than a quarter
// of the divergence from the exact model, at a tenth of the multiplications (docs/decisions/0061).
func (s *Stepper) attend(w *layer, index int, seqs []cpu.Seq, rows int) {
	c, dev := s.m.Config, s.m.dev
	q, kvRows := c.QRows(), c.KVRows()
	width := q + 2*kvRows
	for first := 0; first < rows; first += blockRows {
		n := min(blockRows, rows-first)
		s.normed.SetRows(n)
		dev.RMSNorm(s.normed, s.x[first*c.Hidden:], w.attnNorm, c.NormEps)
		dev.MatMulFine(s.qkv[first*width:], w.qkv, s.normed, s.split)
	}
	if w.qNorm != nil {
		dev.NormHeads(s.qkv, rows, width, c.Heads, w.qNorm, c.NormEps)
		dev.NormHeads(s.qkv[q:], rows, width, c.KVHeads, w.kNorm, c.NormEps)
	}
	turn, window := &s.global, 0
	if w.windowed {
		window = c.Window
		if s.m.local != s.m.global {
			turn = &s.local
		}
	}
	dev.Rope(s.qkv, width, c.Heads, c.HeadDim, turn)
	dev.Rope(s.qkv[q:], width, c.KVHeads, c.HeadDim, turn)
	dev.WriteKV(s.kv, index, seqs, s.qkv[q:], s.qkv[q+kvRows:], width)
	s.heads.SetRows(rows)
	dev.Attention(s.heads, s.qkv, width, s.kv, index, seqs, cpu.AttentionOptions{
		Heads: c.Heads, Scale: c.AttnScale, Window: window, Softcap: c.AttnCap,
	})
}

// keepWanted moves the wanted rows to the front and forgets the others: after the last attention nothing depends on
// them.
func (s *Stepper) keepWanted(want []int32) int {
	hidden := s.m.Hidden
	for i, row := range want {
		copy(s.x[i*hidden:][:hidden], s.x[int(row)*hidden:][:hidden])
		copy(s.heads.Row(i), s.heads.Row(int(row)))
	}
	s.heads.SetRows(len(want))
	return len(want)
}

// feedForward runs the feed-forward block of a layer for n rows.
func (s *Stepper) feedForward(w *layer, first, n int) {
	c, dev := s.m.Config, s.m.dev
	x := s.x[first*c.Hidden:][:n*c.Hidden]
	s.normed.SetRows(n)
	dev.RMSNorm(s.normed, x, w.ffnNorm, c.NormEps)
	s.act.SetRows(n)
	gate := cpu.SiLU
	if c.arch.act == geluTanh {
		gate = cpu.GELUTanh
	}
	dev.MatMulGated(s.act, w.gateUp, s.normed, gate)
	s.project(x, w.down, s.act, w.postFFN)
}

// project adds a matrix product to the residual rows x, normalised first where the architecture says so.
func (s *Stepper) project(x []float32, w *cpu.Matrix, in *cpu.Acts, postNorm []float32) {
	dev := s.m.dev
	if postNorm == nil {
		dev.MatMulAdd(x, w, in)
		return
	}
	dev.MatMul(s.y, w, in)
	dev.RMSNormAdd(x, s.y, postNorm, in.Rows(), s.m.NormEps)
}

// Logits returns the logits of wanted rows first to first+n-1 of the last Forward, [n][Vocab]. n is at most LogitRows.
// The slice is overwritten by the next call.
func (s *Stepper) Logits(first, n int) []float32 {
	m := s.m
	if n < 1 || n > LogitRows || first < 0 || first+n > s.wanted {
		panic(fmt.Sprintf("logits of rows %d to %d of %d wanted, at most %d at once", first, first+n-1, s.wanted, LogitRows))
	}
	s.normed.SetRows(n)
	m.dev.RMSNorm(s.normed, s.x[first*m.Hidden:], m.outNorm, m.NormEps)
	out := s.logits[:n*m.Vocab]
	m.dev.MatMul(out, m.head, s.normed)
	if m.LogitCap > 0 {
		m.dev.Softcap(out, m.LogitCap)
	}
	return out
}
