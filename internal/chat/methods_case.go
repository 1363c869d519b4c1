package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// caseMethods are the str methods that change letters, and encode.
func caseMethods() map[string]*native {
	text := func(f func(string) string) *native {
		return fn("", func(in *interp, a *arguments) (Value, error) {
			s := a.selfText()
			if err := in.build(int64(len(s)) * widestCase); err != nil {
				return nil, err
			}
			return like(a.self, f(s)), nil
		})
	}
	return map[string]*native{
		"upper":      text(upper),
		"lower":      text(lower),
		"title":      text(titleCase),
		"capitalize": text(capitalize),
		"swapcase":   text(swapCase),
		"casefold":   text(caseFold),
		"encode": fn("encoding? errors?", func(in *interp, a *arguments) (Value, error) {
			s := a.selfText()
			return bytesValue(s), in.build(int64(len(s)))
		}),
		"format":     fn("/ * **", formatMethod),
		"format_map": fn("/ mapping", formatMapMethod),
	}
}

func isLetter(r rune) bool { return unicode.IsLetter(r) }

func isNumericRune(r rune) bool { return unicode.IsNumber(r) }

// padMethods are the str methods that pad to a width.
func padMethods() map[string]*native {
	padder := func(side padSide) *native {
		return fn("/ width fillchar?", func(in *interp, a *arguments) (Value, error) {
			return in.pad(a.self, a.v[0], a.or(1, Str(" ")), side)
		})
	}
	return map[string]*native{
		"ljust":      padder(padRight),
		"rjust":      padder(padLeft),
		"center":     padder(padCenter),
		"zfill":      fn("/ width", zeroFill),
		"expandtabs": fn("tabsize?", expandTabs),
	}
}

type padSide uint8

const (
	padLeft padSide = iota
	padRight
	padCenter
)

// pad adds fill characters on the given side until v is width code points long.
func (in *interp) pad(v, width, fill Value, side padSide) (Value, error) {
	n, err := wantInt(width)
	if err != nil {
		return nil, err
	}
	f, err := in.sameKind(v, fill, "The fill character")
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(f) != 1 {
		return nil, typeErrorf("The fill character must be exactly one character long")
	}
	s, _ := asString(v)
	missing := max(n-int64(utf8.RuneCountInString(s)), 0)
	left := int64(0)
	switch side {
	case padLeft:
		left = missing
	case padCenter:
		left = missing/2 + missing&n&1 // Python puts the odd one left when the width is odd
	}
	if missing > in.limits.BuiltBytes {
		return nil, &LimitError{What: "bytes built", Limit: in.limits.BuiltBytes}
	}
	if err := in.build(missing*int64(len(f)) + int64(len(s))); err != nil {
		return nil, err
	}
	return like(v, strings.Repeat(f, int(left))+s+strings.Repeat(f, int(missing-left))), nil
}

func zeroFill(in *interp, a *arguments) (Value, error) {
	s := a.selfText()
	sign := ""
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		sign, s = s[:1], s[1:]
	}
	n, err := wantInt(a.v[0])
	if err != nil {
		return nil, err
	}
	padded, err := in.pad(like(a.self, s), Int(n-int64(len(sign))), Str("0"), padLeft)
	if err != nil {
		return nil, err
	}
	text, _ := asString(padded)
	return like(a.self, sign+text), nil
}

func expandTabs(in *interp, a *arguments) (Value, error) {
	size, err := wantInt(a.or(0, Int(8)))
	if err != nil {
		return nil, err
	}
	s := a.selfText()
	tabs := int64(strings.Count(s, "\t"))
	if tabs > 0 && size > in.limits.BuiltBytes/tabs {
		return nil, &LimitError{What: "bytes built", Limit: in.limits.BuiltBytes}
	}
	if err := in.build(int64(len(s)) + tabs*max(size, 0)); err != nil {
		return nil, err
	}
	var b strings.Builder
	column := int64(0)
	for _, r := range s {
		switch {
		case r == '\t' && size > 0:
			n := size - column%size
			b.WriteString(strings.Repeat(" ", int(n)))
			column += n
		case r == '\t':
		case r == '\n' || r == '\r':
			b.WriteRune(r)
			column = 0
		default:
			b.WriteRune(r)
			column++
		}
	}
	return like(a.self, b.String()), nil
}
