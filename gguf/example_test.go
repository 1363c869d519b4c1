package gguf_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/quire-ai/quire/gguf"
)

// A file is described by a Builder, written, and opened again.
func Example() {
	dir, err := os.MkdirTemp("", "gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "tiny.gguf")

	var b gguf.Builder
	b.Set("general.architecture", "llama")
	b.Set("llama.block_count", uint32(1))
	b.Set("tokenizer.ggml.tokens", []string{"<s>", "a", "b"})
	b.AddFloat32s("output_norm.weight", []uint64{4}, []float32{1, 0.5, 0.25, 2})
	if err := b.WriteFile(path); err != nil {
		log.Fatal(err)
	}

	f, err := gguf.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for key, value := range f.Metadata.All() {
		fmt.Println(key, "=", value)
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		values, err := t.Float32s()
		fmt.Println(t.Name, t.Type, t.Shape, values, err)
	}
	// Output:
	// general.architecture = "llama"
	// llama.block_count = 1
	// tokenizer.ggml.tokens = ["<s>", "a", "b"]
	// output_norm.weight F32 [4] [1 0.5 0.25 2] <nil>
}
