package gguf_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/quire-ai/quire/gguf"
)

func TestForgetKeepsTheBytes(t *testing.T) {
	var b gguf.Builder
	values := make([]float32, 5000) // several pages, neither beginning nor ending at one
	for i := range values {
		values[i] = float32(i)
	}
	b.AddFloat32s("first", []uint64{100}, values[:100])
	b.AddFloat32s("second", []uint64{5000}, values)
	path := filepath.Join(t.TempDir(), "two.gguf")
	if err := b.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensor, _ := f.Tensor("second")
	before := bytes.Clone(tensor.Data)
	f.Forget(tensor)
	if !bytes.Equal(tensor.Data, before) {
		t.Error("the bytes differ after Forget")
	}
}
