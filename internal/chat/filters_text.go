package chat

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textFilters work on strings.
func textFilters() map[string]*native {
	return map[string]*native{
		"capitalize":  fn("s", softText(capitalize)),
		"lower":       fn("s", softText(lower)),
		"upper":       fn("s", softText(upper)),
		"title":       fn("s", filterTitle),
		"center":      fn("value width?", filterCenter),
		"e":           fn("/ s", filterEscape),
		"escape":      fn("/ s", filterEscape),
		"forceescape": fn("value", filterForceEscape),
		"format":      fn("/ value * **", filterFormat),
		"indent":      fn("s width? first? blank?", filterIndent),
		"replace":     fn("s old new count?", filterReplace),
		"safe":        fn("value", filterSafe),
		"string":      fn("/ s", func(in *interp, a *arguments) (Value, error) { return in.softString(a.v[0]) }),
		"striptags":   fn("value", filterStripTags),
		"trim":        fn("value chars?", filterTrim),
		"truncate":    fn("s length? killwords? end? leeway?", filterTruncate),
		"urlencode":   fn("value", filterURLEncode),
		"wordcount":   fn("s", filterWordCount),
		"wordwrap":    unsupported("the wordwrap filter"),
		"xmlattr":     fn("d autospace?", filterXMLAttr),
	}
}

// softText makes a filter of a function on text.
func softText(f func(string) string) func(in *interp, a *arguments) (Value, error) {
	return func(in *interp, a *arguments) (Value, error) {
		v, err := in.softString(a.v[0])
		if err != nil {
			return nil, err
		}
		s, _ := asString(v)
		if err := in.build(int64(len(s)) * widestCase); err != nil {
			return nil, err
		}
		return like(v, f(s)), nil
	}
}

// filterTitle is not Python's title: words begin after white space, hyphens and opening brackets only.
func filterTitle(in *interp, a *arguments) (Value, error) {
	v, err := in.softString(a.v[0])
	if err != nil {
		return nil, err
	}
	s, _ := asString(v)
	if err := in.build(int64(len(s)) * widestCase); err != nil {
		return nil, err
	}
	var b strings.Builder
	for s != "" {
		n := strings.IndexFunc(s, startsWord)
		if n < 0 {
			n = len(s)
		}
		if n > 0 {
			_, first := utf8.DecodeRuneInString(s)
			b.WriteString(upper(s[:first]))
			b.WriteString(lower(s[first:n]))
			s = s[n:]
		}
		n = len(s) - len(strings.TrimLeftFunc(s, startsWord))
		b.WriteString(s[:n])
		s = s[n:]
	}
	return Str(b.String()), nil
}

func startsWord(r rune) bool { return isSpace(r) || strings.ContainsRune("-({[<", r) }

func filterCenter(in *interp, a *arguments) (Value, error) {
	v, err := in.softString(a.v[0])
	if err != nil {
		return nil, err
	}
	return in.pad(v, a.or(1, Int(80)), Str(" "), padCenter)
}

// escape is markupsafe's escape of any value.
func (in *interp) escape(v Value) (markup, error) {
	if m, ok := v.(markup); ok {
		return m, nil
	}
	s, err := in.str(v)
	if err != nil {
		return "", err
	}
	return in.escapeText(s)
}

func (in *interp) escapeText(s string) (markup, error) {
	if err := in.build(int64(len(s)) * int64(len("&amp;"))); err != nil {
		return "", err
	}
	return markup(escapeHTML(s)), nil
}

func filterEscape(in *interp, a *arguments) (Value, error) { return in.escape(a.v[0]) }

func filterForceEscape(in *interp, a *arguments) (Value, error) {
	s, err := in.str(a.v[0])
	if err != nil {
		return nil, err
	}
	return in.escape(Str(s))
}

func filterSafe(in *interp, a *arguments) (Value, error) {
	s, err := in.str(a.v[0])
	return markup(s), err
}

func filterFormat(in *interp, a *arguments) (Value, error) {
	v, err := in.softString(a.v[0])
	if err != nil {
		return nil, err
	}
	if a.keywords == nil {
		return in.percent(v, tuple(a.rest))
	}
	if len(a.rest) > 0 {
		return nil, runtimeErrorf("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
	}
	return in.percent(v, a.keywords)
}

func filterIndent(in *interp, a *arguments) (Value, error) {
	s, ok := asString(a.v[0])
	if !ok {
		if u, ok := a.v[0].(undefined); ok {
			return nil, u.error()
		}
		if _, list := a.v[0].(*List); list { // which Python lets be added to
			return nil, runtimeErrorf("AttributeError", "'list' object has no attribute 'splitlines'")
		}
		return nil, operandError("+=", a.v[0], Str(""))
	}
	indent, ok := asString(a.or(1, Int(4)))
	if !ok {
		v, err := in.binary("*", Str(" "), a.or(1, Int(4)))
		if err != nil {
			return nil, err
		}
		indent, _ = asString(v)
	}
	count := int64(countFunc(s, isLineEnd) + 1)
	if err := in.build(2*int64(len(s)) + count*int64(len(indent)+elementBytes)); err != nil {
		return nil, err
	}
	lines := splitLines(s+"\n", false)
	blank := truth(a.or(3, Bool(false)))
	for i, line := range lines {
		if i > 0 && (blank || line != "") {
			lines[i] = indent + line
		}
	}
	out := strings.Join(lines, "\n")
	if truth(a.or(2, Bool(false))) {
		out = indent + out
	}
	return like(a.v[0], out), nil
}

func filterReplace(in *interp, a *arguments) (Value, error) {
	var texts [3]string
	for i := range texts {
		var err error
		if texts[i], err = in.str(a.v[i]); err != nil {
			return nil, err
		}
	}
	count := int64(-1)
	if c := a.or(3, None{}); c != (None{}) {
		var err error
		if count, err = wantInt(c); err != nil {
			return nil, err
		}
	}
	s, err := in.replace(texts[0], texts[1], texts[2], count)
	return Str(s), err
}

// replace is Python's s.replace(old, new, count) within the budget.
func (in *interp) replace(s, old, new string, count int64) (string, error) {
	found := int64(strings.Count(s, old))
	if count >= 0 {
		found = min(found, count)
	}
	if err := in.build(int64(len(s)) + found*int64(len(new))); err != nil {
		return "", err
	}
	return strings.Replace(s, old, new, int(max(count, -1))), nil
}

func filterStripTags(in *interp, a *arguments) (Value, error) {
	s, err := in.str(a.v[0])
	if err != nil {
		return nil, err
	}
	const wordBytes = 10 // a word of one letter and the space after it, and where it is
	if err := in.build(int64(len(s)) * wordBytes); err != nil {
		return nil, err
	}
	return Str(stripTags(s)), nil
}

func stripTags(s string) string {
	var b strings.Builder
	for {
		start := strings.IndexByte(s, '<')
		if start < 0 {
			break
		}
		end := -1
		if strings.HasPrefix(s[start:], "<!--") {
			if i := strings.Index(s[start+4:], "-->"); i >= 0 {
				end = start + 4 + i + 3
			}
		} else if i := strings.IndexByte(s[start:], '>'); i >= 0 {
			end = start + i + 1
		}
		if end < 0 {
			break
		}
		b.WriteString(s[:start])
		s = s[end:]
	}
	b.WriteString(s)
	return html.UnescapeString(strings.Join(strings.FieldsFunc(b.String(), isSpace), " "))
}

func filterTrim(in *interp, a *arguments) (Value, error) {
	v, err := in.softString(a.v[0])
	if err != nil {
		return nil, err
	}
	return in.strip(v, a.or(1, None{}), true, true)
}

func filterTruncate(in *interp, a *arguments) (Value, error) {
	length, err := wantInt(a.or(1, Int(255)))
	if err != nil {
		return nil, err
	}
	end, err := wantString(a.or(3, Str("...")), "end")
	if err != nil {
		return nil, err
	}
	leeway := int64(5)
	if v := a.or(4, None{}); v != (None{}) {
		if leeway, err = wantInt(v); err != nil {
			return nil, err
		}
	}
	endLength := int64(utf8.RuneCountInString(end))
	if length < endLength || leeway < 0 {
		return nil, runtimeErrorf("AssertionError", "expected length >= %d, got %d", endLength, length)
	}
	n, err := in.length(a.v[0])
	if err != nil || n <= length+leeway {
		return a.v[0], err
	}
	s, ok := asString(a.v[0])
	if !ok {
		return nil, typeErrorf("'%s' object cannot be truncated", a.v[0].typeName())
	}
	cut := s[:runeOffset(s, int(length-endLength))]
	if !truth(a.or(2, Bool(false))) {
		if i := strings.LastIndexByte(cut, ' '); i >= 0 {
			cut = cut[:i]
		}
	}
	return in.addStrings(like(a.v[0], cut), a.or(3, Str("...")))
}

func filterURLEncode(in *interp, a *arguments) (Value, error) {
	next, err := in.iterate(a.v[0])
	if _, isStr := asString(a.v[0]); isStr || err != nil {
		s, err := in.urlQuote(a.v[0], false)
		return Str(s), err
	}
	if d, ok := a.v[0].(*Dict); ok {
		next = dictView{"items", d}.iterate()
	}
	var pairs []string
	for {
		item, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			s, err := in.joinStrings(pairs, "&")
			return Str(s), err
		}
		pair, err := in.unpack(item, 2)
		if err != nil {
			return nil, err
		}
		k, err := in.urlQuote(pair[0], true)
		if err != nil {
			return nil, err
		}
		v, err := in.urlQuote(pair[1], true)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, k+"="+v)
	}
}

func (in *interp) urlQuote(v Value, query bool) (string, error) {
	s, err := in.str(v)
	if err != nil {
		return "", err
	}
	if err := in.build(int64(len(s)) * 3); err != nil {
		return "", err
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case isDecimal(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("_.-~", c) >= 0 || c == '/' && !query:
			b.WriteByte(c)
		case c == ' ' && query:
			b.WriteByte('+')
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String(), nil
}

func filterWordCount(in *interp, a *arguments) (Value, error) {
	s, err := in.str(a.v[0])
	if err != nil {
		return nil, err
	}
	words, inWord := 0, false
	for _, r := range s {
		if isWord(r) && !inWord {
			words++
		}
		inWord = isWord(r)
	}
	return Int(words), in.scan(len(s))
}

// isWord is \w of Python's regular expressions.
func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

func filterXMLAttr(in *interp, a *arguments) (Value, error) {
	d, ok := a.v[0].(*Dict)
	if !ok {
		if u, ok := a.v[0].(undefined); ok {
			return nil, u.error()
		}
		return nil, runtimeErrorf("AttributeError", "'%s' object has no attribute 'items'", a.v[0].typeName())
	}
	var parts []string
	for k, v := range d.All {
		if _, none := v.(None); none || isUndefined(v) {
			continue
		}
		name, err := wantString(k, "attribute name")
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(name, " \t\n\r\f\v/>=") {
			return nil, valueErrorf("Invalid character in attribute name: %s", reprString(name))
		}
		escaped, err := in.escape(k)
		if err != nil {
			return nil, err
		}
		value, err := in.escape(v)
		if err != nil {
			return nil, err
		}
		parts = append(parts, string(escaped)+`="`+string(value)+`"`)
	}
	s, err := in.joinStrings(parts, " ")
	if s != "" && truth(a.or(1, Bool(true))) {
		s = " " + s
	}
	return Str(s), err
}
