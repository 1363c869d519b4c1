package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/quire-ai/quire/gguf"
)

// mkgguf is a command for scripts: it writes a small model file to its argument.
func mkgguf() {
	var b gguf.Builder
	b.Set("general.architecture", "llama")
	b.Set("general.name", "tiny\x1b[2J")
	b.Set("llama.block_count", uint32(1))
	b.Set("llama.rope.freq_base", float32(1e6))
	b.Set("tokenizer.ggml.tokens", []string{"<s>", "a", "b", "c", "d", "e", "f", "g", "h", "\xff"})
	b.Set("tokenizer.chat_template", strings.Repeat("{{ x }}", 30))
	b.AddFloat32s("norm", []uint64{32}, make([]float32, 32))
	b.AddTensor("weight", gguf.Q8_0, []uint64{64, 2}, make([]byte, 136))
	b.AddTensor("scale", gguf.F16, nil, make([]byte, 2))
	b.AddTensor("from.the.future", 99, []uint64{7}, nil)
	if err := b.WriteFile(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
