package chat

import (
	"strings"
	"unicode/utf8"
)

// self is the text of the string a method was called on.
func (a *arguments) selfText() string {
	s, _ := asString(a.self)
	return s
}

// searchMethods are the str methods that look for text, replace it or ask about it.
func searchMethods() map[string]*native {
	ask := func(ok func(rune) bool) *native {
		return fn("", func(in *interp, a *arguments) (Value, error) {
			s := a.selfText()
			return Bool(all(s, ok)), in.scan(len(s))
		})
	}
	askText := func(ok func(string) bool) *native {
		return fn("", func(in *interp, a *arguments) (Value, error) {
			s := a.selfText()
			return Bool(ok(s)), in.scan(len(s))
		})
	}
	return map[string]*native{
		"find":         fn("/ sub start? end?", finder(false, false)),
		"rfind":        fn("/ sub start? end?", finder(true, false)),
		"index":        fn("/ sub start? end?", finder(false, true)),
		"rindex":       fn("/ sub start? end?", finder(true, true)),
		"count":        fn("/ sub start? end?", countMethod),
		"startswith":   fn("/ prefix start? end?", affix(strings.HasPrefix, "startswith")),
		"endswith":     fn("/ suffix start? end?", affix(strings.HasSuffix, "endswith")),
		"replace":      fn("/ old new count?", replaceMethod),
		"removeprefix": fn("/ prefix", remover(strings.TrimPrefix)),
		"removesuffix": fn("/ suffix", remover(strings.TrimSuffix)),
		"isalnum":      ask(isAlnumRune),
		"isalpha":      ask(isLetter),
		"isdecimal":    ask(isDecimalRune),
		"isdigit":      ask(isDigitRune),
		"isnumeric":    ask(isNumericRune),
		"isspace":      ask(isSpace),
		"islower":      askText(isLower),
		"isupper":      askText(isUpper),
		"istitle":      askText(isTitle),
		"isidentifier": askText(isIdentifier),
		"isprintable":  askText(func(s string) bool { return s == "" || all(s, isPrintable) }),
		"isascii":      askText(func(s string) bool { return s == "" || all(s, func(r rune) bool { return r < utf8.RuneSelf }) }),
	}
}

// window is the part of s that the arguments start and end of a method cut out, and the code points before it. ok is
// false when it lies behind the end, where not even an empty string is found.
func (in *interp) window(s string, start, end Value) (part string, skipped int64, ok bool, err error) {
	if err := in.scan(len(s)); err != nil {
		return "", 0, false, err
	}
	_, noStart := start.(None)
	_, noEnd := end.(None)
	if noStart && noEnd {
		return s, 0, true, nil
	}
	n := int64(utf8.RuneCountInString(s))
	from, to, _, err := sliceBounds([3]Value{start, end, None{}}, n)
	if err != nil {
		return "", 0, false, err
	}
	if !noStart {
		i, err := sliceIndex(start)
		if err != nil || i > n || from > to {
			return "", 0, false, err
		}
	}
	at := runeOffset(s, int(from))
	return s[at : at+runeOffset(s[at:], int(max(to-from, 0)))], from, true, nil
}

func finder(last, mustFind bool) func(in *interp, a *arguments) (Value, error) {
	return func(in *interp, a *arguments) (Value, error) {
		sub, err := wantString(a.v[0], "argument")
		if err != nil {
			return nil, err
		}
		part, skipped, ok, err := in.window(a.selfText(), a.or(1, None{}), a.or(2, None{}))
		if err != nil {
			return nil, err
		}
		at := -1
		if ok && last {
			at = strings.LastIndex(part, sub)
		} else if ok {
			at = strings.Index(part, sub)
		}
		if at >= 0 {
			return Int(skipped + int64(utf8.RuneCountInString(part[:at]))), nil
		}
		if mustFind {
			return nil, valueErrorf("substring not found")
		}
		return Int(-1), nil
	}
}

func countMethod(in *interp, a *arguments) (Value, error) {
	sub, err := wantString(a.v[0], "argument")
	if err != nil {
		return nil, err
	}
	part, _, ok, err := in.window(a.selfText(), a.or(1, None{}), a.or(2, None{}))
	if err != nil || !ok {
		return Int(0), err
	}
	return Int(strings.Count(part, sub)), nil
}

func affix(has func(s, affix string) bool, name string) func(in *interp, a *arguments) (Value, error) {
	return func(in *interp, a *arguments) (Value, error) {
		part, _, ok, err := in.window(a.selfText(), a.or(1, None{}), a.or(2, None{}))
		if err != nil {
			return nil, err
		}
		options, isTuple := a.v[0].(tuple)
		if !isTuple {
			options = tuple{a.v[0]}
		}
		for _, o := range options {
			s, isStr := asString(o)
			if !isStr {
				return nil, typeErrorf("%s first arg must be str or a tuple of str, not %s", name, o.typeName())
			}
			if ok && has(part, s) {
				return Bool(true), nil
			}
		}
		return Bool(false), nil
	}
}

func replaceMethod(in *interp, a *arguments) (Value, error) {
	old, err := wantString(a.v[0], "replace() argument 1")
	if err != nil {
		return nil, err
	}
	repl, err := in.sameKind(a.self, a.v[1], "replace() argument 2")
	if err != nil {
		return nil, err
	}
	count := int64(-1)
	if c := a.or(2, nil); c != nil {
		if count, err = wantInt(c); err != nil {
			return nil, err
		}
	}
	s, err := in.replace(a.selfText(), old, repl, count)
	return like(a.self, s), err
}

// sameKind is the text of v as it is put into the string self: escaped when self is marked safe.
func (in *interp) sameKind(self, v Value, what string) (string, error) {
	if _, safe := self.(markup); safe {
		m, err := in.escape(v)
		return string(m), err
	}
	return wantString(v, what)
}

func remover(trim func(s, affix string) string) func(in *interp, a *arguments) (Value, error) {
	return func(in *interp, a *arguments) (Value, error) {
		s, err := wantString(a.v[0], "argument")
		if err != nil {
			return nil, err
		}
		return like(a.self, trim(a.selfText(), s)), in.scan(len(s))
	}
}
