package quire_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quire-ai/quire/gguf"
)

// words are what the tiny model knows to say, in this order. After the last comes the end.
func words() []string {
	return []string{"A", "Ġquire", "Ġis", "Ġa", "Ġgathering", "Ġof", "Ġpages", "."}
}

// tinyModel is the path of the model that the examples run.
var tinyModel string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "quire-example")
	if err != nil {
		panic(err)
	}
	tinyModel = filepath.Join(dir, "tiny.gguf")
	writeTinyModel(tinyModel)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// writeTinyModel writes a model that is whole and valid in form and knows one sentence. Its one layer adds nothing to
// what it reads; each word's embedding points along an axis of its own, and the output matrix turns the axis of a word
// into the logit of the next.
func writeTinyModel(path string) {
	const hidden, ffn = 64, 96
	tokens := append(words(), "<|end|>")
	tokens = append(tokens, "<|user|>", "<|assistant|>")
	vocab := len(tokens)
	var b gguf.Builder
	b.Set("general.architecture", "llama")
	b.Set("llama.block_count", uint32(1))
	b.Set("llama.context_length", uint32(256))
	b.Set("llama.embedding_length", uint32(hidden))
	b.Set("llama.feed_forward_length", uint32(ffn))
	b.Set("llama.attention.head_count", uint32(4))
	b.Set("llama.attention.head_count_kv", uint32(2))
	b.Set("llama.attention.layer_norm_rms_epsilon", float32(1e-5))
	b.Set("llama.rope.dimension_count", uint32(16))
	b.Set("tokenizer.ggml.model", "gpt2")
	b.Set("tokenizer.ggml.pre", "llama-bpe") // words that are tokens need no merges
	b.Set("tokenizer.ggml.tokens", tokens)
	types := make([]int32, vocab)
	for i := range types {
		types[i] = 1 // normal
		if i >= len(words()) {
			types[i] = 3 // control
		}
	}
	b.Set("tokenizer.ggml.token_type", types)
	b.Set("tokenizer.ggml.merges", []string{"Ġ a"})
	b.Set("tokenizer.ggml.eos_token_id", uint32(len(words())))
	b.Set("tokenizer.ggml.add_bos_token", false)
	b.Set("tokenizer.chat_template", "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}<|assistant|>")

	embedding := make([]float32, vocab*hidden)
	output := make([]float32, vocab*hidden)
	for id := range vocab {
		embedding[id*hidden+id] = 1
		next := (id + 1) % vocab
		if tokens[id] == "<|assistant|>" {
			next = 0 // it begins its sentence
		}
		output[next*hidden+id] = 1
	}
	b.AddFloat32s("token_embd.weight", []uint64{hidden, uint64(vocab)}, embedding)
	b.AddFloat32s("output.weight", []uint64{hidden, uint64(vocab)}, output)
	b.AddFloat32s("output_norm.weight", []uint64{hidden}, ones(hidden))
	zeros := func(name string, rows uint64, cols uint64) {
		b.AddFloat32s("blk.0."+name+".weight", []uint64{cols, rows}, make([]float32, rows*cols))
	}
	b.AddFloat32s("blk.0.attn_norm.weight", []uint64{hidden}, ones(hidden))
	zeros("attn_q", 64, hidden)
	zeros("attn_k", 32, hidden)
	zeros("attn_v", 32, hidden)
	zeros("attn_output", hidden, 64)
	b.AddFloat32s("blk.0.ffn_norm.weight", []uint64{hidden}, ones(hidden))
	zeros("ffn_gate", ffn, hidden)
	zeros("ffn_up", ffn, hidden)
	zeros("ffn_down", hidden, ffn)
	if err := b.WriteFile(path); err != nil {
		panic(err)
	}
}

func ones(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = 1
	}
	return v
}
