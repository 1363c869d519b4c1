package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// publishedPatterns are the regular expressions that the scanners are written from (tokenizer.json of the models). A text
// is cut by the first, then each part by the second.
var publishedPatterns = map[string][]string{
	"gpt-2":     {`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`},
	"smollm":    {`\p{N}`, `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`},
	"llama-bpe": {endings + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`},
	"qwen2":     {endings + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`},
	"gpt-4o": {`[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+(?:` + endings + `)?|[^\r\n\p{L}\p{N}]?` + upper + `+` + lower +
		`*(?:` + endings + `)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`},
	"tekken": {`[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+|[^\r\n\p{L}\p{N}]?` + upper + `+` + lower +
		`*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`},
	"qwen35": {endings + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` +
		`|\s*[\r\n]+|\s+(?!\S)|\s+`},
}

// upper and lower are U and L of casedScanner.
const (
	upper = `(?:(?=\p{L})[^a-z])`
	lower = `(?:(?=\p{L})[^A-Z])`
)

// endings is (?i:'s|'t|'re|'ve|'m|'ll|'d) for ASCII: case folding would add 'ſ, which llama.cpp does not take for 's.
const endings = `'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]`

// cutByPattern returns the words of text by a regular expression engine.
func cutByPattern(t *testing.T, text string, patterns []string) []string {
	t.Helper()
	parts := [][]rune{[]rune(text)}
	for _, pattern := range patterns {
		re := regexp2.MustCompile(pattern, regexp2.None)
		var next [][]rune
		for _, part := range parts {
			at := 0
			m, err := re.FindRunesMatch(part)
			for ; m != nil && err == nil; m, err = re.FindNextMatch(m) {
				if m.Index > at {
					next = append(next, part[at:m.Index])
				}
				at = m.Index + m.Length
				next = append(next, part[m.Index:at])
			}
			if err != nil {
				t.Fatal(err)
			}
			if at < len(part) {
				next = append(next, part[at:])
			}
		}
		parts = next
	}
	words := make([]string, len(parts))
	for i, part := range parts {
		words[i] = string(part)
	}
	return words
}

// cutByScanner returns the words of text by the hand-written scanner, with bytes that are not UTF-8 as U+FFFD.
func cutByScanner(t *testing.T, text, pre string) []string {
	t.Helper()
	rules, err := findRules(pre)
	if err != nil {
		t.Fatal(err)
	}
	words := []string{}
	for pos := 0; pos < len(text); {
		end := rules.scan.next(text, pos)
		if end <= pos || end > len(text) {
			t.Fatalf("%s: word of %q at %d ends at %d", pre, text, pos, end)
		}
		words = append(words, string([]rune(text[pos:end])))
		pos = end
	}
	return words
}

// knownToEngine says whether the engine's tables classify all of text as ours do.
func knownToEngine(text string) bool {
	return !strings.ContainsFunc(text, since151)
}

func compareScanners(t *testing.T, text string) {
	t.Helper()
	if !knownToEngine(text) {
		return
	}
	for pre, patterns := range publishedPatterns {
		got, want := cutByScanner(t, text, pre), cutByPattern(t, text, patterns)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q is cut into\n     %q\nwant %q", pre, text, got, want)
		}
	}
}

// scanTexts are the corners of the patterns.
var scanTexts = []string{
	"", " ", "  ", "   a", "a   ", "\n", " \n", "\n ", " \n a", "\n\n  \n x", "a\r\nb", "a \r\n b", "\t\tx", " \tx", "\u00a0a", " \u3000a",
	"I'm you're it's they'll we've he'd don't", "IT'S WE'VE 'LL 'Re 'ſ 'x '' '", " 's", "''s", "\n's", "'s's",
	"123456789", "1 23 456", "a1b2", "½²٣", " 1", "  1", "   12a", "\n1", "1\n1",
	"!!!", " !!!", "  !!!", "!!\n\n", " !\r\n x", "a!b", "-1", " -1", "$ 1", "e\u0301a", " \u0301", "\u0301\u0301a",
	"HelloWorld", "HELLOworld", "ABC", "ÉAB", "AÉB", "aÉB", "ABÉ's", " Don'T", "ab/\n//", "!/\n/ x", " ABc", "\nAb", "漢ABc",
	"漢字かな", "🙂🙂 x", "a\u200db", "\x00\x01a", "\u0378x", "\xff\xfea", " \xc3", "\xf0\x9f\x99",
}

func TestScanners(t *testing.T) {
	for _, text := range scanTexts {
		compareScanners(t, text)
	}
}

// TestScannersAtRandom strings together what the patterns tell apart.
func TestScannersAtRandom(t *testing.T) {
	parts := []string{
		"a", "Z", "é", "漢", "1", "²", "٣", " ", " ", "\n", "\r", "\t", "\u00a0", "\u3000", "\u0085", "'", "'s", "'LL", "'re",
		"!", "-", "🙂", "\u0301", "\u093c", "\x00", "\u0378", "\u200b", "ſ", "K", "\xff",
	}
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		var text strings.Builder
		for range r.IntN(12) {
			text.WriteString(strings.Repeat(parts[r.IntN(len(parts))], 1+r.IntN(3)))
		}
		compareScanners(t, text.String())
	}
}

func FuzzScanners(f *testing.F) {
	for _, text := range scanTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 || !utf8.ValidString(text) {
			t.Skip()
		}
		compareScanners(t, text)
	})
}
