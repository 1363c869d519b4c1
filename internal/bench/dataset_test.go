package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRandom(t *testing.T) {
	shape := Shape{Seed: 1, Prompts: 30, InputTokens: 100, PrefixTokens: 40, OutputTokens: 5}
	items := shape.Random()
	if diff := cmp.Diff(items, shape.Random()); diff != "" {
		t.Errorf("the same seed gives other prompts:\n%s", diff)
	}
	seen := map[string]bool{}
	shared := strings.Join(strings.Fields(items[0].Prompt)[:40], " ")
	for _, item := range items {
		if n := len(strings.Fields(item.Prompt)); n != 100 || item.OutputTokens != 5 {
			t.Errorf("%d words, %d tokens to come", n, item.OutputTokens)
		}
		if !strings.HasPrefix(item.Prompt, shared+" ") || seen[item.Prompt] {
			t.Errorf("prompt %.60q… does not begin as the others, or is there twice", item.Prompt)
		}
		seen[item.Prompt] = true
	}
}

func TestSonnet(t *testing.T) {
	lines := []string{"one", "two two", "three three three"}
	words := func(s string) float64 { return float64(len(strings.Fields(s))) }
	items := Shape{Prompts: 5, InputTokens: 40, PrefixTokens: 12, OutputTokens: 1}.Sonnet(lines, words)
	for _, item := range items {
		if n := words(item.Prompt); n > 40 || n < 37 {
			t.Errorf("%v words, want nearly 40", n)
		}
		if !strings.HasPrefix(item.Prompt, "Pick as many lines as you can from these poem lines:\none\n") {
			t.Errorf("prompt begins %.70q", item.Prompt)
		}
	}
}

func TestReadCustom(t *testing.T) {
	const file = `{"prompt": "a", "output_tokens": 3}` + "\n\n" + `{"prompt": "b"}` + "\n"
	got, err := ReadCustom(strings.NewReader(file), 3, 9)
	want := []Item{{"a", 3}, {"b", 9}, {"a", 3}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v −want +got:\n%s", err, diff)
	}
	for name, bad := range map[string]string{"line 1": "x", `line 1: no "prompt"`: `{"text": "a"}`, "no prompts": "\n"} {
		if _, err := ReadCustom(strings.NewReader(bad), 1, 1); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: error %v, want %q", bad, err, name)
		}
	}
}
