package model

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quire-ai/quire/gguf"
)

// sharedDir returns the folder of golden data: $QUIRE_SHARED, or ../shared beside the module. The test is skipped
// when there is none.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("QUIRE_SHARED")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			if root == filepath.Dir(root) {
				t.Fatal("no go.mod above the test")
			}
			root = filepath.Dir(root)
		}
		dir = filepath.Join(root, "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "golden")); err != nil {
		t.Skipf("no golden data: %v", err)
	}
	return dir
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
