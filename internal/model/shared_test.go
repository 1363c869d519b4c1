package model

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quire-ai/quire/gguf"
)

// sharedDir returns the folder of golden data that is not part of the module: $QUIRE_SHARED, or ../shared beside the
// module. The second result is false where there is none.
func sharedDir() (string, bool) {
	dir := os.Getenv("QUIRE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared") // tests run in their package's folder
	}
	_, err := os.Stat(filepath.Join(dir, "golden"))
	return dir, err == nil
}

// open opens a GGUF file for the length of the test.
func open(t testing.TB, path string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
