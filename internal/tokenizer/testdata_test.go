package tokenizer

import (
	"path/filepath"
	"testing"
)

// TestVocabularies runs the texts of testdata, whose README says where they come from.
func TestVocabularies(t *testing.T) {
	for _, name := range []string{"smollm", "qwen2", "phi3", "tiny"} {
		t.Run(name, func(t *testing.T) {
			tok := testVocabulary(t, name)
			for _, g := range readGolden(t, filepath.Join("testdata", name+".jsonl")) {
				checkGolden(t, tok, g)
			}
		})
	}
}

func testVocabulary(t testing.TB, name string) *Tokenizer {
	t.Helper()
	return loadFile(t, filepath.Join("testdata", name+".gguf"))
}
