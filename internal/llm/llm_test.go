package llm_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/internal/testmodel"
	"github.com/quire-ai/quire/internal/tokenizer"
)

func TestRealModelAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("loads a real model")
	}
	m, err := llm.Load(t.Context(), llm.Options{Model: testmodel.Path(t, "SmolLM2-135M-Instruct.Q4_1.gguf"), KVCacheTokens: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	t.Log(m.Plan)
	if m.Plan.Tokens != 4096 || m.Plan.LongestRequest != 4097 {
		t.Errorf("plan %v; want 4096 tokens and requests of up to 4097, the last token needing no slot", m.Plan)
	}
	text, finish := complete(t, m, "The capital of France is", 8)
	t.Logf("%q %+v", text, finish)
	if !strings.Contains(text, "Paris") {
		t.Errorf("the capital of France is%q", text)
	}
}

func complete(t *testing.T, m *llm.Model, prompt string, n int) (string, engine.Finish) {
	t.Helper()
	params := sample.Default()
	params.Temperature = 0
	h, err := m.Engine.Submit(t.Context(), &engine.Request{
		Prompt: m.Tokenizer.Encode(prompt, tokenizer.Options{AddSpecial: true}), MaxTokens: n, EOS: m.Tokenizer.EOG(), Sampling: params,
	})
	if err != nil {
		t.Fatal(err)
	}
	stream := engine.NewTextStream(h, m.Tokenizer.NewDetokenizer(true), engine.TextOptions{})
	var text strings.Builder
	for {
		d, err := stream.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return text.String(), h.Finish()
		}
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(d.Text)
	}
}
