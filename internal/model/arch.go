package model

// ropeLayout says which two components of a head rope turns together.
type ropeLayout uint8

const (
	// ropePairs turns components 2i and 2i+1. GGUF stores the q and k rows of architecture llama permuted for it.
	ropePairs ropeLayout = iota
	// ropeHalves turns components i and i+d/2, the form of the Hugging Face models.
	ropeHalves
)

// activation is the gate of the feed-forward block: out = down(act(gate(x)) · up(x)).
type activation uint8

const (
	silu     activation = iota // x · sigmoid(x)
	geluTanh                   // GELU by its tanh formula, computed, never read from a half-precision table
)

// presence says whether an architecture has an optional group of tensors.
type presence uint8

const (
	absent   presence = iota // the tensors may not be there
	optional                 // the file decides: all layers or none
	required                 // every layer has them
)

// arch is one row of the architecture table: how a family differs from the plain pre-norm block
//
//	x += o(attend(rope(q(norm(x))), rope(k(norm(x))), v(norm(x))));  x += down(act(gate(norm(x))) · up(norm(x)))
//
// with RMS norms, grouped-query attention and a head that is tied to the embedding when output.weight is missing.
type arch struct {
	name        string // general.architecture
	rope        ropeLayout
	act         activation
	qkvBias     presence // attn_q.bias, attn_k.bias, attn_v.bias
	qkNorm      bool     // RMS norm over each head of q and k before rope: attn_q_norm, attn_k_norm
	postNorms   bool     // sandwich: a norm also after attention and after the feed-forward block
	fusedQKV    bool     // attn_qkv holds q, k and v stacked
	fusedGateUp bool     // ffn_up holds gate and up stacked
	embedScale  bool     // embeddings are multiplied by sqrt(hidden)
	globalEvery int      // every n-th layer attends globally, the others through the window; 0: all layers alike
	localBase   float64  // rope base of windowed layers when the file gives none; 0: the same base as global layers
}

// architectures is the table. Weight names are GGUF's, as llama.cpp's converter writes them.
var architectures = [...]arch{
	// SmolLM2, Llama 2 and 3, Mistral. Llama 3's long-context factors come as the tensor rope_freqs.weight.
	{name: "llama", rope: ropePairs, act: silu, qkvBias: optional},
	{name: "qwen2", rope: ropeHalves, act: silu, qkvBias: required},
	{name: "qwen3", rope: ropeHalves, act: silu, qkNorm: true},
	// Layers 5, 11, 17 … are global. The norms of a GGUF already hold the +1. Local base: Gemma 3 config.json
	// rope_local_base_freq.
	{
		name: "gemma3", rope: ropeHalves, act: geluTanh, qkNorm: true, postNorms: true, embedScale: true,
		globalEvery: 6, localBase: 10000,
	},
	{name: "phi3", rope: ropeHalves, act: silu, fusedQKV: true, fusedGateUp: true},
}

// Architectures lists the names of general.architecture this package runs, in the order of the table.
func Architectures() []string {
	names := make([]string, len(architectures))
	for i := range architectures {
		names[i] = architectures[i].name
	}
	return names
}

// findArch returns the table's row for a name of general.architecture.
func findArch(name string) (*arch, bool) {
	for i := range architectures {
		if architectures[i].name == name {
			return &architectures[i], true
		}
	}
	return nil, false
}
