package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/model/modeltest"
	"github.com/quire-ai/quire/internal/tensor"
)

func randomIDs(n int) []int32 {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = rng.Int32N(288)
	}
	return ids
}

// series returns n numbers from first to last.
func series(n int, first, last float32) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = first + (last-first)*float32(i)/float32(max(n-1, 1))
	}
	return out
}

// TestVariants holds the forward pass to the reference on what published models of the five architectures vary in.
func TestVariants(t *testing.T) {
	if testing.Short() {
		t.Skip("the reference in float64 takes its time")
	}
	type keys = map[string]any
	type tensors = map[string][]float32
	bias := tensors{}
	for _, layer := range []string{"blk.0.", "blk.1."} {
		bias[layer+"attn_q.bias"] = series(64, -0.5, 0.5)
		bias[layer+"attn_k.bias"] = series(32, -0.3, 0.6)
		bias[layer+"attn_v.bias"] = series(32, 0.4, -0.4)
	}
	long := tensors{"rope_factors_short.weight": series(4, 1, 1.5), "rope_factors_long.weight": series(4, 1, 30)}
	cases := map[string]modeltest.Spec{
		"llama tied":         {Tied: true},
		"llama biases":       {Tensors: bias},
		"llama one kv head":  {KVHeads: 1},
		"llama no groups":    {KVHeads: 4},
		"llama group of 3":   {Heads: 9, KVHeads: 3, Hidden: 96},
		"llama group of 7":   {Arch: "qwen2", Heads: 14, KVHeads: 2},
		"llama partial rope": {Keys: keys{"rope.dimension_count": uint32(8)}},
		"llama 3 factors":    {Tensors: tensors{"rope_freqs.weight": series(8, 1, 8)}, Keys: keys{"rope.freq_base": float32(500000)}},
		"llama linear":       {Keys: keys{"rope.scaling.type": "linear", "rope.scaling.factor": float32(4)}},
		"llama old linear":   {Keys: keys{"rope.scale_linear": float32(2)}},
		"llama window":       {Window: 24},
		"qwen2 yarn": {Arch: "qwen2", Keys: keys{
			"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4), "rope.scaling.original_context_length": uint32(64),
		}},
		"qwen3 wide heads":      {Arch: "qwen3", HeadDim: 64, Tied: true},
		"llama odd sizes":       {Hidden: 40, FFN: 100, Vocab: 301, Heads: 3, KVHeads: 1},
		"llama attention scale": {Keys: keys{"attention.scale": float32(0.1)}},
		"gemma3 caps": {Arch: "gemma3", Keys: keys{
			"attn_logit_softcapping": float32(3), "final_logit_softcapping": float32(5),
		}},
		"gemma3 27b":         {Arch: "gemma3", Layers: 62, Heads: 2, Hidden: 32, FFN: 32, HeadDim: 32},
		"gemma3 every other": {Arch: "gemma3", Layers: 4, Keys: keys{"attention.sliding_window_pattern": uint32(2)}},
		"gemma3 linear":      {Arch: "gemma3", Layers: 7, Keys: keys{"rope.scaling.type": "linear", "rope.scaling.factor": float32(8)}},
		"gemma3 two bases": {Arch: "gemma3", Layers: 6, Tied: true, Keys: keys{
			"rope.freq_base": float32(1e6), "rope.freq_base_swa": float32(5e3),
		}},
		"phi3 partial rope": {Arch: "phi3", Keys: keys{"rope.dimension_count": uint32(8)}},
		"phi3 window":       {Arch: "phi3", Window: 17},
		"phi3 longrope short": {Arch: "phi3", Tensors: long, Keys: keys{
			"rope.dimension_count": uint32(8), "rope.scaling.original_context_length": uint32(4096), "rope.scaling.attn_factor": float32(1.19),
		}},
		"phi3 longrope long": {Arch: "phi3", Tensors: long, Keys: keys{
			"rope.dimension_count": uint32(8), "rope.scaling.original_context_length": uint32(64), "rope.scaling.attn_factor": float32(1.19),
		}},
		"kv heads a layer": {Keys: keys{"attention.head_count_kv": []uint32{2, 2}, "feed_forward_length": []uint32{96, 96}}},
	}
	for name, spec := range cases {
		t.Run(name, func(t *testing.T) {
			f := open(t, modeltest.Write(t, spec))
			ids := randomIDs(90)
			r := newReference(t, f)
			r.long = strings.HasSuffix(name, "long")
			// Keys and values in half precision cost up to 0.04 here; a wrong rope, norm or window costs whole units.
			checkClose(t, newMachine(t, f, setup{level: fastest()}).run(t, ids, 64), r.logits(ids), 0.06)
		})
	}
}

// types are the formats of weights that have kernels, but F32.
func types() []tensor.DType {
	return []tensor.DType{
		tensor.F16, tensor.BF16, tensor.Q8_0, tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K,
		tensor.IQ4_NL, tensor.MXFP4,
	}
}

// ofType is a tiny model whose rows are whole blocks of every type.
func ofType(typ tensor.DType) modeltest.Spec {
	return modeltest.Spec{Type: typ, Hidden: 256, FFN: 512, Heads: 4, KVHeads: 2, HeadDim: 64}
}

// TestTypesSameBits computes a prompt with every tensor type on every level, in one chunk and in chunks of 17: the logits
// of every position are the same bits.
func TestTypesSameBits(t *testing.T) {
	ids := randomIDs(27) // 16 and 11 rows, or 16 and 1, then 10
	chunks := []int{17, 64}
	if testing.Short() {
		chunks = chunks[:1]
	}
	for _, typ := range types() {
		path := modeltest.Write(t, ofType(typ))
		want := newMachine(t, open(t, path), setup{threads: 2}).run(t, ids, 64)
		for _, level := range cpu.Levels() {
			for _, chunk := range chunks {
				got := newMachine(t, open(t, path), setup{level: level}).run(t, ids, chunk)
				for i := range want {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("%v, level %v, chunks of %d: logits of position %d differ", typ, level, chunk, i)
						break
					}
				}
			}
		}
	}
}

// TestTypes holds every tensor type to the reference on the same weights. What is left is the rounding of activations to
// 8 bits, so the bound is on the divergence.
func TestTypes(t *testing.T) {
	if testing.Short() {
		t.Skip("the reference in float64 takes its time")
	}
	for _, typ := range types() {
		t.Run(typ.String(), func(t *testing.T) {
			f := open(t, modeltest.Write(t, ofType(typ)))
			ids := randomIDs(24)
			got, want := newMachine(t, f, setup{level: fastest()}).run(t, ids, 64), newReference(t, f).logits(ids)
			kl := 0.0
			for i := range got {
				kl += divergence(want[i], got[i]) / float64(len(got))
			}
			if !(kl < 0.006) {
				t.Errorf("mean KL %g, want below 0.006", kl)
			}
		})
	}
}

// TestWrongTensors loads files with a tensor missing, misshapen, of an unknown type or too many.
func TestWrongTensors(t *testing.T) {
	type (
		spec    = modeltest.Spec
		tensors = map[string][]float32
	)
	for name, c := range map[string]struct {
		spec modeltest.Spec
		want []string
	}{
		"missing":  {spec{Tensors: tensors{"blk.1.ffn_norm.weight": nil}}, []string{`"blk.1.ffn_norm.weight" is missing`, "[64]"}},
		"shape":    {spec{Tensors: tensors{"blk.0.attn_q.weight": series(64, 0, 1)}}, []string{`attn_q.weight" has shape [64]`, "[64 64]"}},
		"unknown":  {spec{Tensors: tensors{"blk.0.attn_sinks.weight": {1}}}, []string{"1 of 22 tensors", `"blk.0.attn_sinks.weight"`}},
		"divisors": {spec{Tensors: tensors{"rope_freqs.weight": series(8, 0, 1)}}, []string{`"rope_freqs.weight": divisor 0 is 0`}},
		"some biases": {
			spec{Tensors: tensors{"blk.1.attn_q.bias": series(64, 0, 1)}}, []string{`"blk.1.attn_k.bias" is missing`},
		},
		"no biases": {spec{Arch: "qwen2", Tensors: tensors{"blk.0.attn_k.bias": nil}}, []string{`attn_k.bias" is missing`}},
		"long factors": {
			spec{Arch: "phi3", Tensors: tensors{"rope_factors_long.weight": series(8, 1, 2)}},
			[]string{`"rope_factors_short.weight" is missing`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dev, err := cpu.NewDevice(cpu.Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			_, err = Load(open(t, modeltest.Write(t, c.spec)), Options{Device: dev})
			if err == nil {
				t.Fatalf("accepted; want an error with %q", c.want)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
		})
	}
}

// TestTooLong asks for more tokens than the model knows positions for.
func TestTooLong(t *testing.T) {
	f := open(t, modeltest.Write(t, modeltest.Spec{Context: 128}))
	_, err := Load(f, Options{MaxModelLen: 129})
	if err == nil || !strings.Contains(err.Error(), "129 tokens exceeds the 128") {
		t.Errorf("error %v; want one that names 129 and 128", err)
	}
}

// TestProgress loads with a callback: bytes rise to the size of all matrices.
func TestProgress(t *testing.T) {
	f := open(t, modeltest.Write(t, modeltest.Spec{}))
	dev, err := cpu.NewDevice(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	var seen []int64
	if _, err := Load(f, Options{Device: dev, Progress: func(done, total int64) {
		seen = append(seen, done)
		if done > total {
			t.Errorf("%d of %d bytes done", done, total)
		}
	}}); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(seen) || len(seen) < 5 {
		t.Errorf("progress %v; want rising numbers", seen)
	}
}

// checkClose compares logits.
func checkClose(t *testing.T, got [][]float32, want [][]float64, tolerance float64) {
	t.Helper()
	worst := 0.0
	for i := range want {
		for k, w := range want[i] {
			worst = max(worst, math.Abs(float64(got[i][k])-w))
		}
	}
	if !(worst <= tolerance) {
		t.Errorf("largest difference from the reference %g, want at most %g", worst, tolerance)
	}
}

// divergence is KL(want || got).
func divergence(want []float64, got []float32) float64 {
	norm := func(at func(int) float64) float64 {
		top, sum := math.Inf(-1), 0.0
		for i := range want {
			top = max(top, at(i))
		}
		for i := range want {
			sum += math.Exp(at(i) - top)
		}
		return top + math.Log(sum)
	}
	p, q := func(i int) float64 { return want[i] }, func(i int) float64 { return float64(got[i]) }
	np, nq, kl := norm(p), norm(q), 0.0
	for i := range want {
		kl += math.Exp(p(i)-np) * (p(i) - np - q(i) + nq)
	}
	return kl
}
