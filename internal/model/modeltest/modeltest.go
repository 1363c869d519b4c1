// Package modeltest writes small random models as GGUF files, so that tests can run every architecture, tensor type
// and shape without downloading one. The weights mean nothing; the files are complete and valid.
package modeltest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/tensor"
)

// Spec describes a model. The zero value of a field means the default named with it.
type Spec struct {
	Arch    string       // general.architecture; llama
	Type    tensor.DType // of the matrices; F32
	Layers  int          // 2
	Hidden  int          // 64
	Heads   int          // 4
	KVHeads int          // 2
	HeadDim int          // 16
	FFN     int          // 96
	Vocab   int          // 288
	Context int          // 4096
	Window  int          // none; gemma3: 16
	Tied    bool         // no output.weight
	Seed    uint64
	Poison  int32 // the embedding of this token holds an infinity; 0: none

	// Keys are added to the metadata under the architecture's prefix, or replace what would be there; nil leaves the
	// key out. For example "rope.freq_base": float32(500000).
	Keys map[string]any
	// Tensors are added as F32 vectors, or replace what would be there; nil leaves the tensor out.
	Tensors map[string][]float32
}

// Write makes the file in a temporary folder of the test and returns its path.
func Write(t testing.TB, s Spec) string {
	t.Helper()
	s.setDefaults()
	path := filepath.Join(t.TempDir(), s.Arch+"-"+s.Type.String()+".gguf")
	b := builder{rng: rand.New(rand.NewPCG(s.Seed, 0x51757265)), spec: &s}
	b.metadata()
	b.tensors()
	if err := b.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *Spec) setDefaults() {
	if s.Arch == "" {
		s.Arch = "llama"
	}
	for _, f := range []struct {
		field *int
		value int
	}{{&s.Layers, 2}, {&s.Hidden, 64}, {&s.Heads, 4}, {&s.KVHeads, 2}, {&s.HeadDim, 16}, {&s.FFN, 96}, {&s.Vocab, 288}, {&s.Context, 4096}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if s.Arch == "gemma3" && s.Window == 0 {
		s.Window = 16
	}
}

// builder turns a Spec into a file.
type builder struct {
	gguf.Builder
	rng  *rand.Rand
	spec *Spec
}

func (b *builder) metadata() {
	s := b.spec
	set := map[string]any{
		"block_count":                      uint32(s.Layers),
		"context_length":                   uint32(s.Context),
		"embedding_length":                 uint32(s.Hidden),
		"feed_forward_length":              uint32(s.FFN),
		"attention.head_count":             uint32(s.Heads),
		"attention.head_count_kv":          uint32(s.KVHeads),
		"attention.key_length":             uint32(s.HeadDim),
		"attention.value_length":           uint32(s.HeadDim),
		"attention.layer_norm_rms_epsilon": float32(1e-5),
	}
	if s.Window > 0 {
		set["attention.sliding_window"] = uint32(s.Window)
	}
	maps.Copy(set, s.Keys)
	b.Set("general.architecture", s.Arch)
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if set[key] != nil {
			b.Set(s.Arch+"."+key, set[key])
		}
	}
}

func (b *builder) tensors() {
	s := b.spec
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	b.matrix("token_embd.weight", s.Vocab, s.Hidden)
	b.vector("output_norm.weight", s.Hidden, 1)
	if !s.Tied {
		b.matrix("output.weight", s.Vocab, s.Hidden)
	}
	for l := range s.Layers {
		p := fmt.Sprintf("blk.%d.", l)
		b.vector(p+"attn_norm.weight", s.Hidden, 1)
		b.vector(p+"ffn_norm.weight", s.Hidden, 1)
		b.matrix(p+"attn_output.weight", s.Hidden, q)
		b.matrix(p+"ffn_down.weight", s.Hidden, s.FFN)
		if s.Arch == "phi3" {
			b.matrix(p+"attn_qkv.weight", q+2*kv, s.Hidden)
			b.matrix(p+"ffn_up.weight", 2*s.FFN, s.Hidden)
		} else {
			b.matrix(p+"attn_q.weight", q, s.Hidden)
			b.matrix(p+"attn_k.weight", kv, s.Hidden)
			b.matrix(p+"attn_v.weight", kv, s.Hidden)
			b.matrix(p+"ffn_gate.weight", s.FFN, s.Hidden)
			b.matrix(p+"ffn_up.weight", s.FFN, s.Hidden)
		}
		switch s.Arch {
		case "qwen2":
			b.vector(p+"attn_q.bias", q, 0)
			b.vector(p+"attn_k.bias", kv, 0)
			b.vector(p+"attn_v.bias", kv, 0)
		case "gemma3":
			b.vector(p+"post_attention_norm.weight", s.Hidden, 1)
			b.vector(p+"post_ffw_norm.weight", s.Hidden, 1)
			fallthrough
		case "qwen3":
			b.vector(p+"attn_q_norm.weight", s.HeadDim, 1)
			b.vector(p+"attn_k_norm.weight", s.HeadDim, 1)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tensors)) {
		if values := s.Tensors[name]; values != nil {
			b.AddFloat32s(name, []uint64{uint64(len(values))}, values)
		}
	}
}

// replaced tells whether the spec puts something else, or nothing, in a tensor's place.
func (b *builder) replaced(name string) bool {
	_, ok := b.spec.Tensors[name]
	return ok
}

// vector adds an F32 vector of values around a mean.
func (b *builder) vector(name string, n int, mean float64) {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(mean + 0.1*b.rng.NormFloat64())
	}
	if !b.replaced(name) {
		b.AddFloat32s(name, []uint64{uint64(n)}, values)
	}
}

// matrix adds a matrix of the spec's type, or of Q8_0 or F32 where a row does not fit its blocks, as converters do.
// Values have a deviation near 1/sqrt(cols)·2, so that the residual stream stays of order one and logits differ.
func (b *builder) matrix(name string, rows, cols int) {
	t := b.spec.Type
	if cols%t.BlockElements() != 0 {
		t = tensor.Q8_0
	}
	if cols%t.BlockElements() != 0 {
		t = tensor.F32
	}
	deviation := 2 / math.Sqrt(float64(cols))
	var data []byte
	switch t {
	case tensor.F32, tensor.F16, tensor.BF16:
		values := make([]float32, rows*cols)
		for i := range values {
			// BF16 numbers with a moderate exponent are exact in F32 and F16 too.
			values[i] = tensor.BF16ToF32(tensor.F32ToBF16(float32(deviation * b.rng.NormFloat64())))
		}
		if p := int(b.spec.Poison); p > 0 && name == "token_embd.weight" {
			values[p*cols] = float32(math.Inf(1))
		}
		data = floatBytes(t, values)
	default:
		data = b.blocks(t, rows*cols/t.BlockElements(), deviation)
	}
	if !b.replaced(name) {
		b.AddTensor(name, t, []uint64{uint64(cols), uint64(rows)}, data)
	}
}

// blocks fills quantised blocks with random bits and then sets their scales to something sane.
func (b *builder) blocks(t tensor.DType, n int, deviation float64) []byte {
	size := t.BlockBytes()
	data := make([]byte, n*size)
	for i := range data {
		data[i] = byte(b.rng.UintN(256))
	}
	for i := range n {
		block := data[i*size:][:size]
		scale := func(at int, v float64) {
			binary.LittleEndian.PutUint16(block[at:], tensor.F32ToF16(float32(v*deviation*(0.8+0.4*b.rng.Float64()))))
		}
		switch t { // where the scales lie: ggml-common.h
		case tensor.Q8_0:
			scale(0, 1.0/74)
		case tensor.Q4_0:
			scale(0, 1.0/4.6)
		case tensor.Q5_0:
			scale(0, 1.0/9.2)
		case tensor.Q4_1:
			scale(0, 1.0/4.6)
			scale(2, -7.5/4.6)
		case tensor.Q5_1:
			scale(0, 1.0/9.2)
			scale(2, -15.5/9.2)
		case tensor.Q4_K:
			scale(0, 1.0/4.6/32)
			scale(2, 7.5/4.6/32)
		case tensor.Q5_K:
			scale(0, 1.0/9.2/32)
			scale(2, 15.5/9.2/32)
		case tensor.IQ4_NL:
			scale(0, 1.0/70)
		case tensor.MXFP4: // a power of two
			block[0] = uint8(128 + math.Round(math.Log2(deviation/5.8)))
		case tensor.Q6_K:
			scale(208, 1.0/18.4/74)
		default:
			panic(fmt.Sprintf("modeltest: no random blocks of %v", t))
		}
	}
	return data
}

// floatBytes encodes values in a float format.
func floatBytes(t tensor.DType, values []float32) []byte {
	var out []byte
	for _, v := range values {
		switch t {
		case tensor.F16:
			out = binary.LittleEndian.AppendUint16(out, tensor.F32ToF16(v))
		case tensor.BF16:
			out = binary.LittleEndian.AppendUint16(out, tensor.F32ToBF16(v))
		default:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out
}
