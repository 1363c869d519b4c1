package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// widestCase is how many times longer a change of case can make a string, in bytes.
const widestCase = 3

// upper is Python's str.upper: characters may become several.
func upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	var b strings.Builder
	for _, r := range s {
		writeForm(&b, upperForms, unicode.ToUpper, r)
	}
	return b.String()
}

// lower is Python's str.lower.
func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for i, r := range s {
		writeLower(&b, s, i, r)
	}
	return b.String()
}

// caseFold is Python's str.casefold.
func caseFold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for _, r := range s {
		writeForm(&b, foldedForms, unicode.ToLower, r)
	}
	return b.String()
}

func capitalize(s string) string {
	var b strings.Builder
	for i, r := range s {
		if i == 0 {
			writeForm(&b, titleForms, unicode.ToTitle, r)
		} else {
			writeLower(&b, s, i, r)
		}
	}
	return b.String()
}

// titleCase is Python's str.title: each run of cased letters is a word.
func titleCase(s string) string {
	var b strings.Builder
	inWord := false
	for i, r := range s {
		if inWord {
			writeLower(&b, s, i, r)
		} else {
			writeForm(&b, titleForms, unicode.ToTitle, r)
		}
		inWord = isCased(r)
	}
	return b.String()
}

func swapCase(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case unicode.IsUpper(r):
			writeLower(&b, s, i, r)
		case unicode.IsLower(r):
			writeForm(&b, upperForms, unicode.ToUpper, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func writeForm(b *strings.Builder, forms map[rune]string, simple func(rune) rune, r rune) {
	if form, ok := forms[r]; ok {
		b.WriteString(form)
		return
	}
	b.WriteRune(simple(r))
}

// writeLower writes the lower case of r, which stands at s[i]. A sigma at the end of a word has a form of its own.
func writeLower(b *strings.Builder, s string, i int, r rune) {
	switch {
	case r == 'İ':
		b.WriteString("i\u0307")
	case r == 'Σ' && endsWord(s, i):
		b.WriteRune('ς')
	default:
		b.WriteRune(unicode.ToLower(r))
	}
}

// endsWord tells whether the letter sigma at s[i] has a letter before it in its word and none after it.
func endsWord(s string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(s[:i], ignoresCase))
	after, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(s[i+len("Σ"):], ignoresCase))
	return isCased(before) && !isCased(after)
}

// ignoresCase tells whether r may stand inside a word without being a letter.
func ignoresCase(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) || strings.ContainsRune("'.:·’․‧", r)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isCased(r rune) bool { return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) }

func isLower(s string) bool {
	cased := false
	for _, r := range s {
		if unicode.IsUpper(r) || unicode.IsTitle(r) {
			return false
		}
		cased = cased || unicode.IsLower(r)
	}
	return cased
}

func isUpper(s string) bool {
	cased := false
	for _, r := range s {
		if unicode.IsLower(r) || unicode.IsTitle(r) {
			return false
		}
		cased = cased || unicode.IsUpper(r)
	}
	return cased
}

// isTitle is Python's str.istitle.
func isTitle(s string) bool {
	cased, inWord := false, false
	for _, r := range s {
		switch {
		case unicode.IsUpper(r) || unicode.IsTitle(r):
			if inWord {
				return false
			}
			cased, inWord = true, true
		case unicode.IsLower(r):
			if !inWord {
				return false
			}
		default:
			inWord = false
		}
	}
	return cased
}

// all tells whether s has characters and ok holds for each.
func all(s string, ok func(rune) bool) bool {
	for _, r := range s {
		if !ok(r) {
			return false
		}
	}
	return s != ""
}

func isDecimalRune(r rune) bool { return unicode.Is(unicode.Nd, r) }

func isDigitRune(r rune) bool {
	return unicode.Is(unicode.Nd, r) || strings.ContainsRune(otherDigits, r)
}

// otherDigits are characters with a digit value that are not decimal, such as superscripts.
const otherDigits = "²³¹⁰⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉①②③④⑤⑥⑦⑧⑨⑴⑵⑶⑷⑸⑹⑺⑻⑼⒈⒉⒊⒋⒌⒍⒎⒏⒐⓪⓵⓶⓷⓸⓹⓺⓻⓼⓽⓿❶❷❸❹❺❻❼❽❾➀➁➂➃➄➅➆➇➈➊➋➌➍➎➏➐➑➒"

func isDigits(s string) bool { return all(s, isDigitRune) }

func isAlnumRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// asciiDigits replaces the decimal digits of other scripts.
func asciiDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || !unicode.Is(unicode.Nd, r) {
			return r
		}
		zero := r
		for unicode.Is(unicode.Nd, zero-1) && r-zero < 9 {
			zero--
		}
		return '0' + r - zero
	}, s)
}
