package tokenizer

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// findNaive is the definition: search for one token after the other, the longest first, in what is left.
func findNaive(v *vocab, ids []int32, text string) []match {
	order := slices.Clone(ids)
	slices.SortStableFunc(order, func(a, b int32) int { return len(v.texts[b]) - len(v.texts[a]) })
	var found []match
	var search func(from, to int, order []int32)
	search = func(from, to int, order []int32) {
		if from >= to || len(order) == 0 {
			return
		}
		token := v.texts[order[0]]
		i := strings.Index(text[from:to], token)
		if i < 0 {
			search(from, to, order[1:])
			return
		}
		start, end := from+i, from+i+len(token)
		found = append(found, match{start, end, order[0]})
		search(from, start, order[1:])
		search(end, to, order)
	}
	search(0, len(text), order)
	slices.SortFunc(found, func(a, b match) int { return a.start - b.start })
	return found
}

// TestSpecials compares with the definition, with tokens that overlap in every way.
func TestSpecials(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		texts := map[string]bool{}
		for range 1 + r.IntN(8) {
			texts[randomWord(r, "ab<", 1+r.IntN(6))] = true
		}
		tokens := slices.Sorted(maps.Keys(texts))
		v, err := newVocab(tokens, nil)
		if err != nil {
			t.Fatal(err)
		}
		var ids []int32
		for id := range tokens {
			ids = append(ids, int32(id))
		}
		text := randomWord(r, "ab<<", r.IntN(50))
		got, want := newSpecials(v, ids).find(text), findNaive(v, ids, text)
		if !slices.Equal(got, want) {
			t.Fatalf("tokens %q in %q\n got %v\nwant %v", tokens, text, got, want)
		}
	}
}

func TestSpecialTokens(t *testing.T) {
	tok := testVocabulary(t, "tiny") // <|endoftext|> 285, <|im_start|> 286, <|im_end|> 287
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"<|im_end|>", []int32{287}},
		{"<|im_start|><|im_end|>", []int32{286, 287}},
		{"<|im_end|<|im_end|>", append(tok.Encode("<|im_end|", Options{}), 287)},
		{"<|im_end|>|>", append([]int32{287}, tok.Encode("|>", Options{})...)},
		{"<|im_end", tok.Encode("<|im_end", Options{})},
	} {
		if got := tok.Encode(c.text, Options{ParseSpecial: true}); !slices.Equal(got, c.want) {
			t.Errorf("Encode(%q) = %v, want %v", c.text, got, c.want)
		}
		for _, id := range tok.Encode(c.text, Options{}) {
			if tok.IsSpecial(id) {
				t.Errorf("Encode(%q) without special tokens has token %d", c.text, id)
			}
		}
	}
}

// TestSpecialsSwallowSpace is Phi-3's habit: its added tokens take the white space after them, but not <s>.
func TestSpecialsSwallowSpace(t *testing.T) {
	tok := testVocabulary(t, "phi3")
	end, begin := tok.Find("<|end|>"), tok.Find("<s>")
	if got := tok.Encode("<|end|> \n\t<|end|>", Options{ParseSpecial: true}); !slices.Equal(got, []int32{end, end}) {
		t.Errorf("white space after <|end|>: %v", got)
	}
	if got := tok.Encode("<s> <s>", Options{ParseSpecial: true}); len(got) <= 2 || got[0] != begin {
		t.Errorf("white space after <s> is gone: %v", got)
	}
}
