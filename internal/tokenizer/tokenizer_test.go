package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quire-ai/quire/internal/invariant"
)

// TestRefused is what a file may not say: each fault is refused with the key and the value.
func TestRefused(t *testing.T) {
	tokens := []string{"a", "b", "ab", "</s>"}
	gpt2 := Config{Model: "gpt2", Pre: "gpt-2", Tokens: tokens, Merges: []string{"a b"}, Special: NoSpecialIDs()}
	llama := Config{Model: "llama", Tokens: tokens, Scores: []float64{0, 0, 1, 0}, Special: NoSpecialIDs(), AddBOS: new(false)}
	for _, c := range []struct {
		name   string
		base   Config
		change func(*Config)
		want   string // in the error; empty for none
	}{
		{"sound BPE", gpt2, func(*Config) {}, ""},
		{"sound SentencePiece", llama, func(*Config) {}, ""},
		{"unknown pre-tokenizer", gpt2, func(c *Config) { c.Pre = "klingon" }, `unknown pre-tokenizer "klingon"`},
		{"no pre-tokenizer", gpt2, func(c *Config) { c.Pre = "" }, "tokenizer.ggml.pre is missing"},
		{"unknown model", gpt2, func(c *Config) { c.Model = "rwkv" }, `unknown tokenizer "rwkv"`},
		{"no model", gpt2, func(c *Config) { c.Model = "" }, "tokenizer.ggml.model is missing"},
		{"no tokens", gpt2, func(c *Config) { c.Tokens = nil }, "empty vocabulary"},
		{"no merges", gpt2, func(c *Config) { c.Merges = nil }, "tokenizer.ggml.merges: missing"},
		{"bad merge", gpt2, func(c *Config) { c.Merges = []string{"a b", "ab"} }, `tokenizer.ggml.merges[1]: "ab"`},
		{"empty merge", gpt2, func(c *Config) { c.Merges = []string{""} }, `tokenizer.ggml.merges[0]: ""`},
		{"token twice", gpt2, func(c *Config) { c.Tokens = []string{"a", "b", "a"} }, `"a" is the text of both token 0 and token 2`},
		{"few types", gpt2, func(c *Config) { c.Types = []TokenType{TypeNormal} }, "1 types for 4 tokens"},
		{"few scores", llama, func(c *Config) { c.Scores = c.Scores[:1] }, "1 scores for 4 tokens"},
		{"BOS asked for, none named", gpt2, func(c *Config) { c.AddBOS = new(true) }, "add_bos_token"},
		{"EOS asked for, none named", gpt2, func(c *Config) { c.AddEOS = new(true) }, "add_eos_token"},
		{"BOS outside the vocabulary", llama, func(c *Config) { c.AddBOS, c.Special.BOS = new(true), 99 }, "add_bos_token"},
	} {
		cfg := c.base
		c.change(&cfg)
		_, err := New(cfg)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// TestAddSpecial is what goes before and after the text: what the file says, else what its kind does.
func TestAddSpecial(t *testing.T) {
	ids := NoSpecialIDs()
	ids.BOS, ids.EOS = 2, 3
	base := Config{
		Model: "llama", Tokens: []string{"▁", "a", "<s>", "</s>"}, Scores: []float64{-1, -2, 0, 0},
		Types: []TokenType{TypeNormal, TypeNormal, TypeControl, TypeControl}, Special: ids,
	}
	for _, c := range []struct {
		name   string
		change func(*Config)
		text   string
		want   []int32
	}{
		{"BOS and a space by default", func(*Config) {}, "a", []int32{2, 0, 1}},
		{"the empty text", func(*Config) {}, "", []int32{2}},
		{"no space", func(c *Config) { c.AddSpacePrefix = new(false) }, "a", []int32{2, 1}},
		{"no BOS", func(c *Config) { c.AddBOS = new(false) }, "a", []int32{0, 1}},
		{"EOS", func(c *Config) { c.AddEOS = new(true) }, "a", []int32{2, 0, 1, 3}},
		{"a space after each special token", func(*Config) {}, "a</s>a", []int32{2, 0, 1, 3, 0, 1}},
	} {
		cfg := base
		c.change(&cfg)
		tok, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Encode(c.text, Options{AddSpecial: true, ParseSpecial: true}); !slices.Equal(got, c.want) {
			t.Errorf("%s: Encode(%q) = %v, want %v", c.name, c.text, got, c.want)
		}
	}
}

// TestDecodeText gives back the very text, also where Encode put a space in front.
func TestDecodeText(t *testing.T) {
	for _, name := range []string{"phi3", "qwen2"} {
		tok := testVocabulary(t, name)
		for _, text := range []string{"", "a", " a", "the the", "  "} {
			if got := tok.DecodeText(tok.Encode(text, Options{AddSpecial: true}), true); got != text {
				t.Errorf("%s: %q comes back as %q", name, text, got)
			}
		}
	}
	tok := testVocabulary(t, "phi3")
	if got := tok.DecodeText(tok.Encode("a", Options{AddSpecial: true}), false); got != "<s>a" && got != "a" {
		t.Errorf("with special tokens shown: %q", got)
	}
}

// TestByteFallback spells what is in no token in byte tokens, and what has none as the unknown token.
func TestByteFallback(t *testing.T) {
	ids := NoSpecialIDs()
	ids.Unknown = 0
	tok, err := New(Config{
		Model: "llama", Tokens: []string{"<unk>", "a", "<0xC3>", "<0xA9>"}, Scores: []float64{0, 0, 0, 0}, Special: ids,
		Types:  []TokenType{TypeUnknown, TypeNormal, TypeByte, TypeByte},
		AddBOS: new(false), AddSpacePrefix: new(false),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.Encode("aéb", Options{}), []int32{1, 2, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("Encode = %v, want %v", got, want)
	}
	if got := tok.Decode([]int32{1, 2, 3, 0}, true); got != "aé" {
		t.Errorf("Decode = %q", got)
	}
}

// TestMergeThroughNoToken has a merge whose result is no token: it is passed through, or spelled in bytes.
func TestMergeThroughNoToken(t *testing.T) {
	tok, err := New(Config{
		Model: "gpt2", Pre: "gpt-2", Tokens: []string{"a", "b", "c", "abc"}, Merges: []string{"a b", "ab c"}, Special: NoSpecialIDs(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{"abc": {3}, "ab": {0, 1}, "abab": {0, 1, 0, 1}, "cab": {2, 0, 1}} {
		if got := tok.Encode(text, Options{}); !slices.Equal(got, want) {
			t.Errorf("Encode(%q) = %v, want %v", text, got, want)
		}
	}
}

// TestUnreachableToken has a token that no merge leads to: it is taken whole only by rules that say so, at the first time
// and after it was learnt.
func TestUnreachableToken(t *testing.T) {
	for pre, want := range map[string][]int32{"gpt-2": {0, 1}, "llama-bpe": {3}} {
		tok, err := New(Config{
			Model: "gpt2", Pre: pre, Tokens: []string{"a", "b", "c", "ab"}, Merges: []string{"b c"}, Special: NoSpecialIDs(),
			AddBOS: new(false),
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := tok.Encode("ab", Options{}); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", pre, got, want)
			}
		}
	}
}

// TestEndTokens finds the ends by name and by text.
func TestEndTokens(t *testing.T) {
	for _, c := range []struct {
		name   string
		tokens []string
		eos    int32
		want   []int32
	}{
		{"named and well known", []string{"a", "<end>", "<|im_end|>"}, 1, []int32{1, 2}},
		{"repository name", []string{"a", "<reponame>"}, None, []int32{1}},
		{"<|end|> ends", []string{"a", "<|end|>", "<|call|>"}, None, []int32{1, 2}},
		{"<|end|> separates (gpt-oss)", []string{"a", "<|end|>", "<|call|>", "<|return|>"}, None, []int32{2, 3}},
		{"none", []string{"a"}, None, []int32{}},
	} {
		ids := NoSpecialIDs()
		ids.EOS = c.eos
		tok, err := New(Config{Model: "gpt2", Pre: "gpt-2", Tokens: c.tokens, Merges: []string{"a a"}, Special: ids})
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.EOG(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestConcurrent shares one tokenizer among goroutines; the race detector watches.
func TestConcurrent(t *testing.T) {
	tok := testVocabulary(t, "qwen2")
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	texts := make([]string, 50)
	want := make([][]int32, len(texts))
	fresh := testVocabulary(t, "qwen2")
	for i := range texts {
		texts[i] = randomWord(r, "the quick 12\n!", 200)
		want[i] = fresh.Encode(texts[i], Options{})
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i, text := range texts {
				if got := tok.Encode(text, Options{}); !slices.Equal(got, want[i]) {
					t.Errorf("Encode(%q) = %v, want %v", text, got, want[i])
				}
			}
		})
	}
	group.Wait()
}

// TestHostileTexts encodes long texts that make a careless tokenizer quadratic, with which this would take hours. See
// BenchmarkHostile for the times.
func TestHostileTexts(t *testing.T) {
	size := 1 << 18
	if testing.Short() {
		size = 1 << 16
	}
	for _, name := range []string{"smollm", "qwen2", "phi3"} {
		tok := testVocabulary(t, name)
		for kind, text := range hostileTexts(size) {
			if ids := tok.Encode(text, Options{ParseSpecial: true}); len(ids) == 0 && spells(tok, text) {
				t.Errorf("%s: no ids for %s", name, kind)
			}
		}
	}
}

// TestAppendEncode keeps what was in the buffer, and needs no memory of its own once warm.
func TestAppendEncode(t *testing.T) {
	tok := testVocabulary(t, "qwen2")
	const text = "the cat and the dog, 12 of them"
	ids := tok.AppendEncode([]int32{7}, text, Options{})
	if ids[0] != 7 || !slices.Equal(ids[1:], tok.Encode(text, Options{})) {
		t.Errorf("AppendEncode to [7] = %v", ids)
	}
	if invariant.Enabled {
		return // the race detector's sync.Pool forgets on purpose
	}
	if allocs := testing.AllocsPerRun(100, func() { ids = tok.AppendEncode(ids[:0], text, Options{}) }); allocs > 0.1 {
		t.Errorf("%v allocations, want none", allocs)
	}
}
