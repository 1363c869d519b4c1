package gguf

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkOpen stands for the start of quire serve: a file of 400 MB with Gemma's 262 144 tokens. The weights are a
// hole in the file, since opening does not read them.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "large.gguf")
	writeLarge(b, path)
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStrings stands for the tokenizer reading the same vocabulary.
func BenchmarkStrings(b *testing.B) {
	path := filepath.Join(b.TempDir(), "large.gguf")
	writeLarge(b, path)
	f, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Metadata.Strings("tokenizer.ggml.tokens"); err != nil {
			b.Fatal(err)
		}
	}
}

func writeLarge(b *testing.B, path string) {
	b.Helper()
	tokens := make([]string, 262_144)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token%d", i)
	}
	var builder Builder
	builder.Set("tokenizer.ggml.tokens", tokens)
	builder.Set("tokenizer.ggml.scores", make([]float32, len(tokens)))
	builder.Set("tokenizer.ggml.token_type", make([]int32, len(tokens)))
	for i := range 290 {
		builder.AddTensor(fmt.Sprintf("blk.%d.weight", i), 99, []uint64{1}, nil) // a type without bytes
	}
	if err := builder.WriteFile(path); err != nil {
		b.Fatal(err)
	}
	if err := os.Truncate(path, 400<<20); err != nil {
		b.Fatal(err)
	}
}
