package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The committed assembly is what the generator writes.
func TestCommittedFiles(t *testing.T) {
	for name, want := range generate() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from what the generator writes: run go generate ./internal/cpu", name)
		}
	}
}
