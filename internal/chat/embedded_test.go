package chat

import (
	"path/filepath"
	"testing"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/testmodel"
)

// embeddedTemplate is the template inside a published model file, which is skipped where it was not downloaded.
func embeddedTemplate(t *testing.T, file string) string {
	t.Helper()
	f, err := gguf.Open(testmodel.Path(t, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := f.Metadata.String("tokenizer.chat_template")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestEmbeddedTemplates(t *testing.T) {
	for name, file := range map[string]string{
		"embedded_smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
		"embedded_qwen2.5": "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(sharedDir(t), "golden", "chat", name+".jsonl")
			src := embeddedTemplate(t, file)
			for _, c := range readGolden(t, path) {
				checkGolden(t, c, src, decodeVars(t, c.Variables))
			}
		})
	}
}
