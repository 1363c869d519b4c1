package model

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/tensor"
)

// reference is the forward pass as one would write it on paper: dequantised weights, float64 everywhere, one
// sequence, no cache, no tricks. It is the oracle of this package's tests and shares only Config and rope with the
// code under test.
type reference struct {
	c      *Config
	f      *gguf.File
	t      testing.TB
	long   bool                 // long rope with its long factors
	floats map[string][]float32 // tensors dequantised so far
}

func newReference(t testing.TB, f *gguf.File) *reference {
	t.Helper()
	c, err := ParseConfig(f)
	if err != nil {
		t.Fatal(err)
	}
	return &reference{c: c, f: f, t: t, floats: map[string][]float32{}}
}

// weights returns a tensor's values, row after row, and the length of a row.
func (r *reference) weights(name string) ([]float32, int) {
	r.t.Helper()
	ts, ok := r.f.Tensor(name)
	if !ok {
		r.t.Fatalf("reference: no tensor %q", name)
	}
	cols := int(ts.Shape[0])
	if w, ok := r.floats[name]; ok {
		return w, cols
	}
	n := 1
	for _, d := range ts.Shape {
		n *= int(d)
	}
	w := make([]float32, n)
	if err := tensor.Dequantize(ts.Type, w, ts.Data); err != nil {
		r.t.Fatalf("reference: %s: %v", name, err)
	}
	r.floats[name] = w
	return w, cols
}

func (r *reference) has(name string) bool { _, ok := r.f.Tensor(name); return ok }

// project multiplies rows [from,to) of a matrix with every vector of x and adds the bias when there is one.
func (r *reference) project(name string, from, to int, x [][]float64) [][]float64 {
	w, cols := r.weights(name + ".weight")
	var bias []float32
	if r.has(name + ".bias") {
		bias, _ = r.weights(name + ".bias")
	}
	out := make([][]float64, len(x))
	var wg sync.WaitGroup
	for i := range x {
		wg.Go(func() {
			out[i] = make([]float64, to-from)
			for o := range out[i] {
				row, sum := w[(from+o)*cols:][:cols], 0.0
				for k, v := range x[i] {
					sum += v * float64(row[k])
				}
				if bias != nil {
					sum += float64(bias[from+o])
				}
				out[i][o] = sum
			}
		})
	}
	wg.Wait()
	return out
}

func (r *reference) norm(name string, x [][]float64) [][]float64 {
	w, _ := r.weights(name + ".weight")
	out := make([][]float64, len(x))
	for i, v := range x {
		out[i] = rmsNorm64(v, w, float64(r.c.NormEps))
	}
	return out
}

func rmsNorm64(v []float64, w []float32, eps float64) []float64 {
	sum := 0.0
	for _, a := range v {
		sum += a * a
	}
	s := 1 / math.Sqrt(sum/float64(len(v))+eps)
	out := make([]float64, len(v))
	for k, a := range v {
		out[k] = a * s * float64(w[k])
	}
	return out
}

func (r *reference) turn(v []float64, pos int, rp *frequencies) {
	d := len(rp.radians)
	for i, f := range rp.radians {
		a, b := 2*i, 2*i+1
		if r.c.arch.rope == ropeHalves {
			a, b = i, i+d
		}
		sin, cos := math.Sincos(float64(pos) * f)
		sin, cos = sin*rp.magnitude, cos*rp.magnitude
		v[a], v[b] = v[a]*cos-v[b]*sin, v[a]*sin+v[b]*cos
	}
}

// attention runs one layer's attention block on normalised x.
func (r *reference) attention(layer int, x [][]float64) [][]float64 {
	c, p := r.c, fmt.Sprintf("blk.%d.", layer)
	nq, nkv, d := c.QRows(), c.KVRows(), c.HeadDim
	var q, k, v [][]float64
	if c.arch.fusedQKV {
		q = r.project(p+"attn_qkv", 0, nq, x)
		k = r.project(p+"attn_qkv", nq, nq+nkv, x)
		v = r.project(p+"attn_qkv", nq+nkv, nq+2*nkv, x)
	} else {
		q = r.project(p+"attn_q", 0, nq, x)
		k = r.project(p+"attn_k", 0, nkv, x)
		v = r.project(p+"attn_v", 0, nkv, x)
	}
	rp := r.rope(layer)
	prepare := func(rows [][]float64, heads int, normName string) {
		for i := range rows {
			for h := range heads {
				head := rows[i][h*d:][:d]
				if c.arch.qkNorm {
					w, _ := r.weights(p + normName + ".weight")
					copy(head, rmsNorm64(head, w, float64(c.NormEps)))
				}
				r.turn(head, i, rp)
			}
		}
	}
	prepare(q, c.Heads, "attn_q_norm")
	prepare(k, c.KVHeads, "attn_k_norm")
	out := make([][]float64, len(x))
	for i := range x {
		first := 0
		if c.Windowed(layer) {
			first = max(0, i-c.Window+1)
		}
		out[i] = make([]float64, nq)
		for h := range c.Heads {
			kh := h / (c.Heads / c.KVHeads) * d
			scores, top := make([]float64, i+1), math.Inf(-1)
			for j := first; j <= i; j++ {
				for e := range d {
					scores[j] += q[i][h*d+e] * k[j][kh+e]
				}
				scores[j] = capped(scores[j]*float64(c.AttnScale), float64(c.AttnCap))
				top = max(top, scores[j])
			}
			sum := 0.0
			for j := first; j <= i; j++ {
				scores[j] = math.Exp(scores[j] - top)
				sum += scores[j]
			}
			for j := first; j <= i; j++ {
				for e := range d {
					out[i][h*d+e] += scores[j] / sum * v[j][kh+e]
				}
			}
		}
	}
	return r.project(p+"attn_output", 0, c.Hidden, out)
}

func (r *reference) rope(layer int) *frequencies {
	spec := &r.c.global
	if r.c.Windowed(layer) {
		spec = &r.c.local
	}
	var divisors []float32
	name := "rope_freqs.weight"
	if spec.scaling == ropeLong {
		name = "rope_factors_short.weight"
		if r.long {
			name = "rope_factors_long.weight"
		}
	}
	if r.has(name) && (spec == &r.c.global || spec.scaling == ropeLong) {
		divisors, _ = r.weights(name)
	}
	rp := spec.build(divisors)
	return &rp
}

// feedForward runs one layer's feed-forward block on normalised x.
func (r *reference) feedForward(layer int, x [][]float64) [][]float64 {
	c, p := r.c, fmt.Sprintf("blk.%d.", layer)
	var gate, up [][]float64
	if c.arch.fusedGateUp {
		gate = r.project(p+"ffn_up", 0, c.FFN, x)
		up = r.project(p+"ffn_up", c.FFN, 2*c.FFN, x)
	} else {
		gate = r.project(p+"ffn_gate", 0, c.FFN, x)
		up = r.project(p+"ffn_up", 0, c.FFN, x)
	}
	for i := range gate {
		for k, g := range gate[i] {
			act := g / (1 + math.Exp(-g))
			if c.arch.act == geluTanh {
				act = 0.5 * g * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g)))
			}
			gate[i][k] = act * up[i][k]
		}
	}
	return r.project(p+"ffn_down", 0, c.Hidden, gate)
}

// logits runs the whole model over one sequence and returns the logits after each token.
func (r *reference) logits(ids []int32) [][]float64 {
	c := r.c
	emb, cols := r.weights("token_embd.weight")
	x := make([][]float64, len(ids))
	for i, id := range ids {
		x[i] = make([]float64, c.Hidden)
		for k, w := range emb[int(id)*cols:][:cols] {
			x[i][k] = float64(w) * float64(c.EmbedScale)
		}
	}
	for l := range c.Layers {
		p := fmt.Sprintf("blk.%d.", l)
		y := r.attention(l, r.norm(p+"attn_norm", x))
		if c.arch.postNorms {
			y = r.norm(p+"post_attention_norm", y)
		}
		addTo(x, y)
		y = r.feedForward(l, r.norm(p+"ffn_norm", x))
		if c.arch.postNorms {
			y = r.norm(p+"post_ffw_norm", y)
		}
		addTo(x, y)
	}
	x = r.norm("output_norm", x)
	head := "output"
	if !r.has("output.weight") {
		head = "token_embd"
	}
	out := r.project(head, 0, c.Vocab, x)
	for _, row := range out {
		for i := range row {
			row[i] = capped(row[i], float64(c.LogitCap))
		}
	}
	return out
}

func capped(x, limit float64) float64 {
	if limit == 0 {
		return x
	}
	return limit * math.Tanh(x/limit)
}

func addTo(x, y [][]float64) {
	for i := range x {
		for k := range x[i] {
			x[i][k] += y[i][k]
		}
	}
}
