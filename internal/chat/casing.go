package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func upper(s string) string { return strings.ToUpper(s) }

func lower(s string) string { return strings.ToLower(s) }

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return ""
	}
	return string(unicode.ToTitle(r)) + lower(s[n:])
}

// titleCase is Python's str.title: each run of cased letters is a word.
func titleCase(s string) string {
	var b strings.Builder
	inWord := false
	for _, r := range s {
		if inWord {
			b.WriteRune(unicode.ToLower(r))
		} else {
			b.WriteRune(unicode.ToTitle(r))
		}
		inWord = isCased(r)
	}
	return b.String()
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
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
