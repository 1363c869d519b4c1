package chat

import (
	"strings"
	"unicode"
)

// isSpace is Python's idea of white space, which has four control characters more than Go's.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func isIdentifier(s string) bool {
	for i, r := range s {
		switch {
		case r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) || unicode.Is(unicode.Other_ID_Start, r):
		case i > 0 && (unicode.IsDigit(r) || unicode.IsMark(r) && !unicode.Is(unicode.Me, r) ||
			unicode.Is(unicode.Pc, r) || unicode.Is(unicode.Other_ID_Continue, r)):
		default:
			return false
		}
	}
	return s != ""
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

// escapeHTML is what markupsafe does to text that is not marked safe.
func escapeHTML(s string) string { return htmlEscaper.Replace(s) }
