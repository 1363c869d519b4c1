package model

import (
	"testing"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/cpu"
)

// machine is a model with its device and cache, for tests that need no scheduler: one sequence whose blocks are handed
// out in order.
type machine struct {
	*Stepper
	dev    *cpu.Device
	tables [][]int32 // [cache group]
}

// fastest is the best level of this processor.
func fastest() cpu.Level { return cpu.Levels()[len(cpu.Levels())-1] }

// setup says how a machine computes; the zero value is the generic level, one thread, blocks of 16, steps of up to 64
// rows and 512 tokens.
type setup struct {
	level     cpu.Level
	threads   int
	blockSize int
	maxRows   int
	tokens    int
	whole     bool // all layers keep the whole context
}

func newMachine(t testing.TB, f *gguf.File, o setup) *machine {
	t.Helper()
	def := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	def(&o.threads, 1)
	def(&o.blockSize, 16)
	def(&o.maxRows, 64)
	def(&o.tokens, 512)
	dev, err := cpu.NewDevice(cpu.Options{Level: o.level, Threads: o.threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	m, err := Load(f, Options{Device: dev, MaxModelLen: o.tokens, WholeContext: o.whole})
	if err != nil {
		t.Fatal(err)
	}
	groups := len(m.CacheGroups)
	count := (o.tokens + o.blockSize - 1) / o.blockSize * groups
	kv, err := cpu.NewKV(m.KVShape(o.blockSize), count+1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kv.Close() })
	s, err := m.NewStepper(kv, o.maxRows)
	if err != nil {
		t.Fatal(err)
	}
	r := &machine{Stepper: s, dev: dev, tables: make([][]int32, groups)}
	for i := range count {
		r.tables[i%groups] = append(r.tables[i%groups], int32(count-i)) // not in order of memory
	}
	return r
}

// step computes the tokens from position from on and returns the logits of every row, or of the last one.
func (r *machine) step(tokens []int32, from int, all bool) ([][]float32, error) {
	b := &Batch{Tokens: tokens}
	for _, blocks := range r.tables {
		b.Seqs = append(b.Seqs, []cpu.Seq{{Blocks: blocks, Rows: len(tokens), Pos: from}})
	}
	for i := range tokens {
		if all || i == len(tokens)-1 {
			b.Want = append(b.Want, int32(i))
		}
	}
	if err := r.Forward(b); err != nil {
		return nil, err
	}
	var out [][]float32
	for i := 0; i < len(b.Want); i += LogitRows {
		n := min(LogitRows, len(b.Want)-i)
		logits := r.Logits(i, n)
		for k := range n {
			out = append(out, append([]float32(nil), logits[k*r.m.Vocab:][:r.m.Vocab]...))
		}
	}
	return out, nil
}

// run computes a sequence in chunks and returns the logits of every position.
func (r *machine) run(t testing.TB, ids []int32, chunk int) [][]float32 {
	t.Helper()
	var out [][]float32
	for from := 0; from < len(ids); from += chunk {
		rows, err := r.step(ids[from:min(from+chunk, len(ids))], from, true)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rows...)
	}
	return out
}

// Logits and Greedy of goldenRunner let package golden run the machine.
type goldenRunner struct {
	t testing.TB
	m *machine
}

func (g goldenRunner) Vocab() int { return g.m.m.Vocab }

func (g goldenRunner) Logits(ids []int32, want func(int) bool, visit func(int, []float32)) error {
	for pos, logits := range g.m.run(g.t, ids, g.m.maxRows) {
		if want(pos) {
			visit(pos, logits)
		}
	}
	return nil
}

func (g goldenRunner) Greedy(ids []int32, n int) ([]int32, error) {
	var out []int32
	rows := g.m.run(g.t, ids, g.m.maxRows)
	last := rows[len(rows)-1]
	for {
		best := 0
		for i, v := range last {
			if v > last[best] {
				best = i
			}
		}
		out = append(out, int32(best))
		if len(out) == n {
			return out, nil
		}
		rows, err := g.m.step(out[len(out)-1:], len(ids)+len(out)-1, false)
		if err != nil {
			return nil, err
		}
		last = rows[0]
	}
}
