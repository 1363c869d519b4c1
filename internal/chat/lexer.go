package chat

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind names the kinds of token the parser sees.
type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokData
	tokVariableBegin
	tokVariableEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInteger
	tokFloat
	tokOperator
)

// token is one lexical unit. For an operator text is its spelling, for a string the unescaped value.
type token struct {
	kind tokenKind
	line int
	text string
}

// is tells whether the token is the operator op.
func (t token) is(op string) bool { return t.kind == tokOperator && t.text == op }

// isName tells whether the token is the name or keyword s.
func (t token) isName(s string) bool { return t.kind == tokName && t.text == s }

// describe names the token as jinja2's messages do.
func (t token) describe() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "template data / text"
	case tokVariableBegin:
		return "begin of print statement"
	case tokVariableEnd:
		return "end of print statement"
	case tokBlockBegin:
		return "begin of statement block"
	case tokBlockEnd:
		return "end of statement block"
	default:
		return t.text
	}
}

// lexer cuts a template into tokens. It follows jinja2's rules with trim_blocks and lstrip_blocks on.
type lexer struct {
	src          string
	pos          int
	line         int
	lineStarting bool // the last thing consumed ended in a newline, or nothing was consumed yet
	tokens       []token
}

// tokenize returns the tokens of src, the last one being tokEOF.
func tokenize(src string) ([]token, error) {
	lx := &lexer{src: trimFinalNewline(normalizeNewlines(src)), line: 1, lineStarting: true}
	for lx.pos < len(lx.src) {
		if err := lx.root(); err != nil {
			return nil, err
		}
	}
	lx.emit(tokEOF, "")
	return lx.tokens, nil
}

func normalizeNewlines(s string) string {
	if !strings.Contains(s, "\r") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func trimFinalNewline(s string) string { return strings.TrimSuffix(s, "\n") }

func (lx *lexer) emit(kind tokenKind, text string) {
	lx.tokens = append(lx.tokens, token{kind: kind, line: lx.line, text: text})
}

func (lx *lexer) errorf(format string, args ...any) error {
	return &SyntaxError{Type: "TemplateSyntaxError", Message: fmt.Sprintf(format, args...), Line: lx.line}
}

// consume moves past n bytes and keeps count of lines.
func (lx *lexer) consume(n int) {
	text := lx.src[lx.pos : lx.pos+n]
	lx.line += strings.Count(text, "\n")
	lx.pos += n
	lx.lineStarting = strings.HasSuffix(text, "\n")
}

// root reads template text up to the next tag and then the tag.
func (lx *lexer) root() error {
	rest := lx.src[lx.pos:]
	at := tagStart(rest)
	if at < 0 {
		lx.emit(tokData, rest)
		lx.consume(len(rest))
		return nil
	}
	kind := rest[at+1]
	sign := signAt(rest, at+2)
	text := lx.stripText(rest[:at], sign, kind == '{')
	if text != "" {
		lx.emit(tokData, text)
	}
	open := at + 2
	if sign != 0 {
		open++
	}
	if kind == '%' {
		if n := rawBegin(rest[open:]); n > 0 {
			lx.consume(open + n)
			return lx.raw()
		}
	}
	lx.consume(open)
	switch kind {
	case '#':
		return lx.comment()
	case '{':
		lx.emit(tokVariableBegin, "{{")
		return lx.tag(tokVariableEnd)
	default:
		lx.emit(tokBlockBegin, "{%")
		return lx.tag(tokBlockEnd)
	}
}

// tagStart is the index of the first "{{", "{%" or "{#" in s, or -1.
func tagStart(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '{')
		if i < 0 || from+i+1 >= len(s) {
			return -1
		}
		i += from
		if c := s[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
		from = i + 1
	}
}

// signAt is the whitespace control sign at s[i], or 0.
func signAt(s string, i int) byte {
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		return s[i]
	}
	return 0
}

// stripText applies the whitespace control of the tag that follows text.
func (lx *lexer) stripText(text string, sign byte, variable bool) string {
	if sign == '-' {
		return strings.TrimRightFunc(text, isSpace)
	}
	if sign == '+' || variable {
		return text
	}
	lineStart := strings.LastIndexByte(text, '\n') + 1
	if (lineStart > 0 || lx.lineStarting) && strings.TrimLeftFunc(text[lineStart:], isSpace) == "" {
		return text[:lineStart]
	}
	return text
}

// rawBegin is the length of `raw %}` at the start of s, or 0.
func rawBegin(s string) int {
	n := spaces(s)
	if !strings.HasPrefix(s[n:], "raw") {
		return 0
	}
	n += len("raw")
	n += spaces(s[n:])
	switch {
	case strings.HasPrefix(s[n:], "-%}"):
		n += len("-%}")
		return n + spaces(s[n:])
	case strings.HasPrefix(s[n:], "%}"):
		return n + len("%}")
	}
	return 0
}

// spaces is the length of the white space at the start of s.
func spaces(s string) int { return len(s) - len(strings.TrimLeftFunc(s, isSpace)) }

// blockEnd is the length of a closing `%}` or `#}` at the start of s with what it trims, or 0.
func blockEnd(s, end string) int {
	switch {
	case strings.HasPrefix(s, "-"+end):
		n := 1 + len(end)
		return n + spaces(s[n:])
	case strings.HasPrefix(s, "+"+end):
		return 1 + len(end)
	case strings.HasPrefix(s, end+"\n"):
		return len(end) + 1
	case strings.HasPrefix(s, end):
		return len(end)
	}
	return 0
}

func (lx *lexer) comment() error {
	rest := lx.src[lx.pos:]
	if rest == "" {
		return nil // jinja2 takes a comment that begins where the template ends
	}
	i := strings.Index(rest, "#}")
	if i < 0 {
		return lx.errorf("Missing end of comment tag")
	}
	if i > 0 && (rest[i-1] == '-' || rest[i-1] == '+') {
		i--
	}
	lx.consume(i + blockEnd(rest[i:], "#}"))
	return nil
}

// raw reads the body of a raw block and its end tag.
func (lx *lexer) raw() error {
	rest := lx.src[lx.pos:]
	if rest == "" {
		return nil
	}
	for from := 0; ; {
		i := strings.Index(rest[from:], "{%")
		if i < 0 {
			return lx.errorf("Missing end of raw directive")
		}
		i += from
		from = i + 2
		sign := signAt(rest, from)
		after := from
		if sign != 0 {
			after++
		}
		n := rawEnd(rest[after:])
		if n == 0 && sign != 0 {
			continue
		}
		if n == 0 {
			continue
		}
		if text := lx.stripText(rest[:i], sign, false); text != "" {
			lx.emit(tokData, text)
		}
		lx.consume(after + n)
		return nil
	}
}

// rawEnd is the length of `endraw %}` at the start of s with what it trims, or 0.
func rawEnd(s string) int {
	n := spaces(s)
	if !strings.HasPrefix(s[n:], "endraw") {
		return 0
	}
	n += len("endraw")
	n += spaces(s[n:])
	end := blockEnd(s[n:], "%}")
	if end == 0 {
		return 0
	}
	return n + end
}

// tag reads the tokens of one tag up to its end, which only counts outside brackets.
func (lx *lexer) tag(end tokenKind) error {
	var open []byte
	for lx.pos < len(lx.src) {
		rest := lx.src[lx.pos:]
		if len(open) == 0 {
			if n := tagEnd(rest, end); n > 0 {
				lx.emit(end, rest[:n])
				lx.consume(n)
				return nil
			}
		}
		if n := spaces(rest); n > 0 {
			lx.consume(n)
			continue
		}
		if err := lx.inTag(rest, &open); err != nil {
			return err
		}
	}
	return nil
}

func tagEnd(s string, end tokenKind) int {
	if end == tokBlockEnd {
		return blockEnd(s, "%}")
	}
	switch {
	case strings.HasPrefix(s, "-}}"):
		return 3 + spaces(s[3:])
	case strings.HasPrefix(s, "}}"):
		return 2
	}
	return 0
}

// inTag reads one token inside a tag.
func (lx *lexer) inTag(rest string, open *[]byte) error {
	c := rest[0]
	switch {
	case c >= '0' && c <= '9':
		lx.number(rest)
		return nil
	case c == '"' || c == '\'':
		return lx.stringLiteral(rest)
	}
	if n := nameLength(rest); n > 0 {
		if !isIdentifier(rest[:n]) {
			return lx.errorf("Invalid character in identifier")
		}
		lx.emit(tokName, rest[:n])
		lx.consume(n)
		return nil
	}
	op := operatorAt(rest)
	if op == "" {
		r, _ := utf8.DecodeRuneInString(rest)
		return lx.errorf("unexpected char %s at %d", reprString(string(r)), utf8.RuneCountInString(lx.src[:lx.pos]))
	}
	if err := lx.balance(op, open); err != nil {
		return err
	}
	lx.emit(tokOperator, op)
	lx.consume(len(op))
	return nil
}

// balance keeps the stack of brackets that are still to be closed.
func (lx *lexer) balance(op string, open *[]byte) error {
	switch op {
	case "{":
		*open = append(*open, '}')
	case "(":
		*open = append(*open, ')')
	case "[":
		*open = append(*open, ']')
	case "}", ")", "]":
		n := len(*open)
		if n == 0 {
			return lx.errorf("unexpected '%s'", op)
		}
		want := (*open)[n-1]
		*open = (*open)[:n-1]
		if want != op[0] {
			return lx.errorf("unexpected '%s', expected '%c'", op, want)
		}
	}
	return nil
}

func operatorAt(s string) string {
	if len(s) >= 2 {
		switch s[:2] {
		case "//", "**", "==", "!=", ">=", "<=":
			return s[:2]
		}
	}
	if strings.IndexByte("+-/*%~[](){}><=.:|,;", s[0]) >= 0 {
		return s[:1]
	}
	return ""
}

func nameLength(s string) int {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) && !(i > 0 && unicode.IsMark(r)) {
			return i
		}
	}
	return len(s)
}

// number reads an integer or a float. A float may not follow a dot: in a.1.2 the parts are two subscripts.
func (lx *lexer) number(rest string) {
	if lx.pos == 0 || lx.src[lx.pos-1] != '.' {
		if n := floatLength(rest); n > 0 {
			lx.emit(tokFloat, strings.ReplaceAll(rest[:n], "_", ""))
			lx.consume(n)
			return
		}
	}
	n := integerLength(rest)
	lx.emit(tokInteger, strings.ReplaceAll(rest[:n], "_", ""))
	lx.consume(n)
}

// digits is the length of digits, with single underscores between them, that satisfy ok at the start of s.
func digits(s string, ok func(byte) bool) int {
	n := 0
	for n < len(s) {
		switch {
		case ok(s[n]):
			n++
		case s[n] == '_' && n > 0 && n+1 < len(s) && ok(s[n+1]):
			n += 2
		default:
			return n
		}
	}
	return n
}

func isDecimal(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDecimal(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func floatLength(s string) int {
	n := digits(s, isDecimal)
	float := false
	if n < len(s) && s[n] == '.' {
		if d := digits(s[n+1:], isDecimal); d > 0 {
			n += 1 + d
			float = true
		}
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		e := n + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if d := digits(s[e:], isDecimal); d > 0 {
			return e + d
		}
	}
	if !float {
		return 0
	}
	return n
}

func integerLength(s string) int {
	if len(s) > 2 && s[0] == '0' {
		var ok func(byte) bool
		switch s[1] | 0x20 {
		case 'b':
			ok = func(c byte) bool { return c == '0' || c == '1' }
		case 'o':
			ok = func(c byte) bool { return c >= '0' && c <= '7' }
		case 'x':
			ok = isHex
		}
		if ok != nil {
			from := 2
			if s[2] == '_' {
				from = 3
			}
			if n := digits(s[from:], ok); n > 0 {
				return from + n
			}
		}
	}
	if s[0] == '0' {
		return digits(s, func(c byte) bool { return c == '0' })
	}
	return digits(s, isDecimal)
}

func (lx *lexer) stringLiteral(rest string) error {
	quote := rest[0]
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case quote:
			value, err := unescape(rest[1:i])
			if err != nil {
				return lx.errorf("%s", err)
			}
			lx.emit(tokString, value)
			lx.consume(i + 1)
			return nil
		}
	}
	return lx.errorf("unexpected char %s at %d", reprString(string(quote)), utf8.RuneCountInString(lx.src[:lx.pos]))
}
