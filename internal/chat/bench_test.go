package chat

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkRender stands for a chat request with tools and several turns, of about 4 KB of prompt.
func BenchmarkRender(b *testing.B) {
	src, vars := benchInput(b)
	tmpl, err := Parse(src)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Render(b.Context(), vars, Options{Now: goldenNow}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParse stands for loading a model.
func BenchmarkParse(b *testing.B) {
	src, _ := benchInput(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, err := Parse(src); err != nil {
			b.Fatal(err)
		}
	}
}

func benchInput(b *testing.B) (string, *Dict) {
	b.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", "templates", "think_im.jinja"))
	if err != nil {
		b.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join("testdata", "conversations.json"))
	if err != nil {
		b.Fatal(err)
	}
	all, err := FromJSON(data)
	if err != nil {
		b.Fatal(err)
	}
	vars, _ := all.(*Dict).Get("round_trip")
	return string(src), vars.(*Dict)
}
