// Package testmodel finds the published models that some tests need. Unit tests do without.
package testmodel

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a published model's file: in $QUIRE_TEST_MODELS, or in the folder quire-test-models of the
// user's cache. The test is skipped when it is not there.
func Path(t testing.TB, file string) string {
	t.Helper()
	dir := os.Getenv("QUIRE_TEST_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		dir = filepath.Join(cache, "quire-test-models")
	}
	path := filepath.Join(dir, file)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no published model: %v", err)
	}
	return path
}
