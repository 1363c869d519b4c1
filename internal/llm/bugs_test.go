package llm_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/llm"
)

// deepspeed-mii #274: a KV cache smaller than what requests may need was a deadlock. Here it is served (longer ones are refused
// or end with length), and the log says so at start, with both numbers; and is silent where one longest request just fits.
func TestSmallCacheIsSaidAtStart274(t *testing.T) {
	path := filepath.Join("..", "model", "testdata", "tiny", "llama_gqa", "llama_gqa-f16.gguf")
	for _, c := range []struct {
		modelLen int
		want     string
	}{
		{129, ""}, // the last token needs no slot
		{130, "longest_request=129 max_model_len=130"},
	} {
		var log bytes.Buffer
		o := llm.Options{Model: path, KVCacheTokens: 128, MaxModelLen: c.modelLen, Threads: 1, Tiers: llm.Tiers{RAM: -1}}
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		m, err := llm.Load(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		const said = "the KV cache is smaller than the model's context"
		if got := strings.Contains(log.String(), said); got != (c.want != "") || !strings.Contains(log.String(), c.want) {
			t.Errorf("cache of 128 tokens, requests of up to %d: the log says\n%s\nwant %q in it", c.modelLen, &log, c.want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
