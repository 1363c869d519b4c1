package server

import (
	"testing"

	"github.com/quire-ai/quire/internal/chat"
	"github.com/quire-ai/quire/internal/openai"
)

// Templates ask for an assistant's thoughts by one of two names, and clients send them by one of two.
func TestReasoningHasBothNames(t *testing.T) {
	tmpl, err := chat.Parse(`{{ m.reasoning }} {{ m.reasoning_content }} {{ m.content }}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"reasoning", "reasoning_content"} {
		content := "said"
		m := &openai.Message{
			Role: "assistant", Content: &content, Raw: []byte(`{"role":"assistant","content":"said","` + name + `":"thought"}`),
		}
		value, err := (&Server{}).messageValue(m)
		if err != nil {
			t.Fatal(err)
		}
		vars := &chat.Dict{}
		vars.Set("m", value)
		if got, err := tmpl.Render(t.Context(), vars, chat.Options{}); err != nil || got != "thought thought said" {
			t.Errorf("%s: template sees %q, %v", name, got, err)
		}
	}
}
