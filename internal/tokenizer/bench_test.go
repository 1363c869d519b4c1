package tokenizer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// benchTexts are what a server sees most: English prose, and program text. Lines of prose come from the golden data.
func benchTexts(b *testing.B) map[string]string {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip(err)
	}
	code, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src", "net", "http", "server.go"))
	if err != nil {
		b.Skip(err)
	}
	prose, err := os.ReadFile(filepath.Join(sharedDir(b), "traces", "sonnet.txt"))
	if err != nil {
		b.Skip(err)
	}
	return map[string]string{"prose": strings.Repeat(string(prose), 10), "code": string(code)}
}

// BenchmarkEncode stands for the tokenising of long prompts.
func BenchmarkEncode(b *testing.B) {
	for vocabulary, file := range publishedModels {
		tok := realModel(b, file)
		for kind, text := range benchTexts(b) {
			b.Run(vocabulary+"/"+kind, func(b *testing.B) {
				ids := tok.Encode(text, Options{})
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					ids = tok.AppendEncode(ids[:0], text, Options{})
				}
			})
		}
	}
}

// BenchmarkLoad is the tokenizer's part in starting a server.
func BenchmarkLoad(b *testing.B) {
	for vocabulary, file := range publishedModels {
		b.Run(vocabulary, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				realModel(b, file)
			}
		})
	}
}

// hostileTexts are texts of one size that make a careless tokenizer quadratic: one word that never ends, or white space
// that a lookahead is tried on at each place.
func hostileTexts(size int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, size/len(s)+1)[:size/len(s)*len(s)] }
	return map[string]string{
		"letters":    fill("a"),
		"words":      fill("abcdefghijklmnopqrstuvwxyz"),
		"spaces":     fill(" "),
		"spaced":     fill(" \t"),
		"newlines":   fill("\n"),
		"lines":      fill(" \n"),
		"digits":     fill("1"),
		"emoji":      fill("🙂"),
		"marks":      fill("\u0301"),
		"ideographs": fill("漢字"),
		"quotes":     fill("'"),
		"brackets":   fill("<"),
		"unused":     fill("<unused"),
		"marked":     fill("<|im_"),
		"special":    fill("<|im_start|>"),
		"nul":        fill("\x00"),
		"invalid":    fill("\xff\xc3"),
		"spacemarks": fill("▁"),
		"tags":       fill("> > >"),
	}
}

// BenchmarkHostile shows that no text takes much longer than another of its size.
func BenchmarkHostile(b *testing.B) {
	for vocabulary, file := range publishedModels {
		tok := realModel(b, file)
		for kind, text := range hostileTexts(1 << 20) {
			b.Run(vocabulary+"/"+kind, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					tok.Encode(text, Options{ParseSpecial: true})
				}
			})
		}
	}
}
