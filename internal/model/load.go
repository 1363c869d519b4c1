package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/cpu"
)

// Options say how a model is loaded.
type Options struct {
	Device *cpu.Device // packs the weights and computes; the model does not close it

	// MaxModelLen is the longest sequence, in tokens, that will be run: prompt and output. 0 takes the model's own
	// context. Models with two sets of rope factors (Phi-3 longrope) use the short set up to their original context and
	// the long set beyond it, so this choice is part of what a token depends on.
	MaxModelLen int

	// WholeContext has windowed layers keep the whole context like the others, in one cache group.
	WholeContext bool

	// Progress is told, from the loading goroutine, how many bytes of the file's weights are packed. Nil: nobody.
	Progress func(done, total int64)
}

// layer is the weights of one block. Matrices are [output][input].
type layer struct {
	attnNorm []float32   // [Hidden]
	qkv      *cpu.Matrix // [QRows + 2·KVRows][Hidden]: q, k and v stacked, biases included
	qNorm    []float32   // [HeadDim] or nil
	kNorm    []float32   // [HeadDim] or nil
	out      *cpu.Matrix // [Hidden][QRows]
	postAttn []float32   // [Hidden] or nil
	ffnNorm  []float32   // [Hidden]
	gateUp   *cpu.Matrix // [2·FFN][Hidden]: gate, then up
	down     *cpu.Matrix // [Hidden][FFN]
	postFFN  []float32   // [Hidden] or nil
	windowed bool
}

// loader takes tensors out of a file by name, checks their shapes, and packs matrices. It keeps the first fault.
type loader struct {
	f     *gguf.File
	c     *Config
	o     Options
	taken map[string]bool
	done  int64 // bytes of weights packed
	total int64
	err   error
}

// take returns a tensor of the given shape, in GGUF's order (row length first), or nil and a fault.
func (l *loader) take(name string, shape ...int) *gguf.Tensor {
	if l.err != nil {
		return nil
	}
	t, ok := l.f.Tensor(name)
	if !ok {
		l.err = fmt.Errorf("tensor %q is missing; its shape would be %v", name, shape)
		return nil
	}
	l.taken[name] = true
	same := len(t.Shape) == len(shape)
	for i := range shape {
		same = same && t.Shape[i] == uint64(shape[i])
	}
	switch {
	case !same:
		l.err = fmt.Errorf("tensor %q has shape %v, want %v", name, t.Shape, shape)
	case !t.Type.CanDequantize() || len(shape) == 2 && !cpu.CanPack(t.Type):
		l.err = fmt.Errorf("tensor %q is of type %v, which is not supported", name, t.Type)
	}
	return t
}

func (l *loader) has(name string) bool { _, ok := l.f.Tensor(name); return ok }

// vector returns a tensor of n numbers as float32.
func (l *loader) vector(name string, n int) []float32 {
	t := l.take(name, n)
	if l.err != nil {
		return nil
	}
	v, err := t.Float32s()
	if err != nil {
		l.err = err
	}
	return v
}

// rowsOf names a tensor and how many rows it has, for stacking.
type rowsOf struct {
	name string
	rows int
	half bool // the tensor is two matrices of so many rows
}

// matrix packs tensors of cols columns stacked on one another.
func (l *loader) matrix(cols int, stack ...rowsOf) *cpu.Matrix {
	parts := make([]cpu.Part, 0, len(stack))
	for _, s := range stack {
		pieces := 1
		if s.half {
			pieces = 2
		}
		t := l.take(s.name, cols, pieces*s.rows)
		if l.err != nil {
			return nil
		}
		for i := range pieces {
			size := len(t.Data) / pieces
			parts = append(parts, cpu.Part{Type: t.Type, Rows: s.rows, Data: t.Data[i*size:][:size]})
		}
	}
	m, err := l.o.Device.PackRows(cols, parts...)
	if err != nil {
		l.err = fmt.Errorf("tensor %q: %w", stack[0].name, err)
		return nil
	}
	for _, s := range stack {
		t, _ := l.f.Tensor(s.name)
		l.done += int64(len(t.Data))
		l.f.Forget(t) // packed: the file's pages need not count as ours too
	}
	if l.o.Progress != nil {
		l.o.Progress(l.done, l.total)
	}
	return m
}

// layer loads block i.
func (l *loader) layer(i int) layer {
	c, p := l.c, fmt.Sprintf("blk.%d.", i)
	w := layer{
		attnNorm: l.vector(p+"attn_norm.weight", c.Hidden),
		out:      l.matrix(c.QRows(), rowsOf{name: p + "attn_output.weight", rows: c.Hidden}),
		ffnNorm:  l.vector(p+"ffn_norm.weight", c.Hidden),
		down:     l.matrix(c.FFN, rowsOf{name: p + "ffn_down.weight", rows: c.Hidden}),
		windowed: c.Windowed(i),
	}
	if c.arch.fusedQKV {
		w.qkv = l.matrix(c.Hidden, rowsOf{name: p + "attn_qkv.weight", rows: c.QRows() + 2*c.KVRows()})
	} else {
		w.qkv = l.matrix(c.Hidden, rowsOf{name: p + "attn_q.weight", rows: c.QRows()},
			rowsOf{name: p + "attn_k.weight", rows: c.KVRows()}, rowsOf{name: p + "attn_v.weight", rows: c.KVRows()})
	}
	if bias := l.qkvBias(p); l.err == nil {
		w.qkv.Bias = bias
	}
	if c.arch.fusedGateUp {
		w.gateUp = l.matrix(c.Hidden, rowsOf{name: p + "ffn_up.weight", rows: c.FFN, half: true})
	} else {
		w.gateUp = l.matrix(c.Hidden, rowsOf{name: p + "ffn_gate.weight", rows: c.FFN}, rowsOf{name: p + "ffn_up.weight", rows: c.FFN})
	}
	if c.arch.qkNorm {
		w.qNorm = l.vector(p+"attn_q_norm.weight", c.HeadDim)
		w.kNorm = l.vector(p+"attn_k_norm.weight", c.HeadDim)
	}
	if c.arch.postNorms {
		w.postAttn = l.vector(p+"post_attention_norm.weight", c.Hidden)
		w.postFFN = l.vector(p+"post_ffw_norm.weight", c.Hidden)
	}
	return w
}

// qkvBias returns the stacked biases of q, k and v, or nil where there are none.
func (l *loader) qkvBias(p string) []float32 {
	c := l.c
	if c.arch.qkvBias == absent || c.arch.qkvBias == optional && !l.has(p+"attn_q.bias") {
		return nil
	}
	return slices.Concat(l.vector(p+"attn_q.bias", c.QRows()),
		l.vector(p+"attn_k.bias", c.KVRows()), l.vector(p+"attn_v.bias", c.KVRows()))
}

// ropeOf works out the rope of global or windowed layers, with the divisors the file holds.
func (l *loader) ropeOf(s *ropeSpec, maxLen int) *cpu.Rope {
	n := s.dims / 2
	switch {
	case s.scaling == ropeLong:
		short := l.vector("rope_factors_short.weight", n)
		long := l.vector("rope_factors_long.weight", n)
		if maxLen > s.original {
			short = long
		}
		return l.buildRope(s, "rope_factors_*.weight", short)
	case s == &l.c.global && l.has("rope_freqs.weight"):
		return l.buildRope(s, "rope_freqs.weight", l.vector("rope_freqs.weight", n))
	default:
		return l.buildRope(s, "", nil)
	}
}

func (l *loader) buildRope(s *ropeSpec, name string, divisors []float32) *cpu.Rope {
	if l.err != nil {
		return nil
	}
	for i, d := range divisors {
		if !(d > 0) || d > 1e30 {
			l.err = fmt.Errorf("tensor %q: divisor %d is %g", name, i, d)
			return nil
		}
	}
	f := s.build(divisors)
	return cpu.NewRope(cpu.RopeOptions{
		Frequencies: f.radians, Magnitude: f.magnitude, Interleaved: l.c.arch.rope == ropePairs,
	})
}

// unknownTensor returns a fault that names the tensors nobody took: a model with parts that are not computed would
// answer, and answer wrongly.
func (l *loader) unknownTensor() error {
	var left []string
	for i := range l.f.Tensors {
		if t := &l.f.Tensors[i]; !l.taken[t.Name] {
			left = append(left, t.Name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	first := left[:min(len(left), 3)]
	return fmt.Errorf("%d of %d tensors have no place in architecture %q, the first are %q",
		len(left), len(l.f.Tensors), l.c.Arch, strings.Join(first, ", "))
}
