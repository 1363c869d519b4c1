package chat

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unescape reads the escapes of a string literal as jinja2 does: text outside ASCII is first turned into escapes and
// then all escapes are decoded, so a backslash before such a character swallows the escape and leaves its letters.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	s = escapeNonASCII(s)
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			i++
			continue
		}
		if i+1 == len(s) {
			return "", errors.New(`\ at end of string`)
		}
		n, err := writeEscape(&b, s[i+1:])
		if err != nil {
			return "", err
		}
		i += 1 + n
	}
	return b.String(), nil
}

// writeEscape decodes the escape whose text after the backslash begins s, and returns how much of s it took.
func writeEscape(b *strings.Builder, s string) (int, error) {
	c := s[0]
	switch c {
	case '\n':
		return 1, nil
	case 'x':
		return writeHexEscape(b, s, 2)
	case 'u':
		return writeHexEscape(b, s, 4)
	case 'U':
		return writeHexEscape(b, s, 8)
	case 'N':
		return 0, errors.New("character names in escapes are not supported")
	}
	if i := strings.IndexByte(`\'"abfnrtv`, c); i >= 0 {
		b.WriteByte("\\'\"\a\b\f\n\r\t\v"[i])
		return 1, nil
	}
	if c < '0' || c > '7' {
		b.WriteByte('\\')
		b.WriteByte(c)
		return 1, nil
	}
	n, value := 0, rune(0)
	for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
		value = value*8 + rune(s[n]-'0')
		n++
	}
	b.WriteRune(value)
	return n, nil
}

func writeHexEscape(b *strings.Builder, s string, digits int) (int, error) {
	n := 0
	for n < digits && 1+n < len(s) && isHex(s[1+n]) {
		n++
	}
	if n < digits {
		return 0, fmt.Errorf(`truncated \%c%s escape`, s[0], strings.Repeat("X", digits))
	}
	code, err := strconv.ParseUint(s[1:1+n], 16, 32)
	if err != nil || code > utf8.MaxRune {
		return 0, errors.New("illegal Unicode character")
	}
	b.WriteRune(rune(code))
	return 1 + n, nil
}

func escapeNonASCII(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			b.WriteByte(byte(r))
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}
