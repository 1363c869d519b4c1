package llm

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/sample"
)

func metadata(t *testing.T, values map[string]any) *gguf.Metadata {
	t.Helper()
	var b gguf.Builder
	for key, value := range values {
		b.Set(key, value)
	}
	var file bytes.Buffer
	if _, err := b.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse("test.gguf", file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return &f.Metadata
}

func TestRecommendedSampling(t *testing.T) {
	got, err := recommended(metadata(t, map[string]any{
		"general.sampling.temp": float32(0.5), "general.sampling.top_k": int32(20), "general.sampling.top_p": float32(0.75),
	}), catalog.Sampling{Temperature: 0.2})
	want := sample.Default()
	want.Temperature, want.TopK, want.TopP = 0.5, 20, 0.75
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("recommended: %v, -want +got\n%s", err, diff)
	}
	if got, err := recommended(metadata(t, nil), catalog.Sampling{}); err != nil || !cmp.Equal(got, sample.Default()) {
		t.Errorf("without keys: %+v, %v, want the default", got, err)
	}
	want = sample.Default()
	want.Temperature, want.TopP = 0.2, 0.9
	if got, err := recommended(metadata(t, nil), catalog.Sampling{Temperature: 0.2, TopP: 0.9}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("without keys, of a catalogued model: %+v, %v, want %+v", got, err, want)
	}
	_, err = recommended(metadata(t, map[string]any{"general.sampling.temp": float32(9)}), catalog.Sampling{})
	if err == nil || !strings.Contains(err.Error(), "temperature must be in [0, 2], got 9") {
		t.Errorf("temperature 9: %v", err)
	}
}
