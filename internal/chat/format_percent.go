package chat

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// percentFormat is one run of Python's % operator on a string.
type percentFormat struct {
	in     *interp
	format string
	pos    int
	args   []Value
	next   int
	named  Value // the mapping that %(name)s looks in, or nil
	safe   bool  // the format is marked safe: what is put in is escaped
	b      strings.Builder
}

// percent is format % values.
func (in *interp) percent(format, values Value) (Value, error) {
	s, _ := asString(format)
	p := &percentFormat{in: in, format: s, args: []Value{values}}
	_, p.safe = format.(markup)
	switch v := values.(type) {
	case tuple:
		p.args = v
	case *group:
		p.args = []Value{v.key, v.list}
	case *Dict, *List, undefined, rangeValue, bytesValue:
		p.named = values
	}
	for p.pos < len(s) {
		i := strings.IndexByte(s[p.pos:], '%')
		if i < 0 {
			i = len(s) - p.pos
		}
		p.b.WriteString(s[p.pos : p.pos+i])
		p.pos += i
		if p.pos == len(s) {
			break
		}
		p.pos++
		if err := p.directive(); err != nil {
			return nil, err
		}
	}
	if p.next < len(p.args) && p.named == nil {
		return nil, typeErrorf("not all arguments converted during string formatting")
	}
	return like(format, p.b.String()), in.build(int64(p.b.Len()))
}

func (p *percentFormat) arg() (Value, error) {
	if p.next >= len(p.args) {
		return nil, typeErrorf("not enough arguments for format string")
	}
	p.next++
	return p.args[p.next-1], nil
}

// directive writes one value, from the character after the percent sign.
func (p *percentFormat) directive() error {
	if strings.HasPrefix(p.format[p.pos:], "%") {
		p.pos++
		p.b.WriteByte('%')
		return nil
	}
	spec := &formatSpec{fill: " ", precision: -1}
	if err := p.name(); err != nil {
		return err
	}
	p.flags(spec)
	var err error
	if spec.width, err = p.number(); err != nil {
		return err
	}
	if spec.width < 0 {
		spec.width, spec.align = -spec.width, '<'
	}
	if p.pos < len(p.format) && p.format[p.pos] == '.' {
		p.pos++
		if spec.precision, err = p.number(); err != nil {
			return err
		}
		spec.precision = max(spec.precision, 0)
	}
	if p.pos < len(p.format) && strings.IndexByte("hlL", p.format[p.pos]) >= 0 {
		p.pos++
	}
	if p.pos >= len(p.format) {
		return valueErrorf("incomplete format")
	}
	spec.kind = p.format[p.pos]
	p.pos++
	v, err := p.arg()
	if err != nil {
		return err
	}
	if err := p.in.check(spec); err != nil {
		return err
	}
	text, err := p.value(spec, v)
	if err != nil {
		return err
	}
	p.b.WriteString(text)
	return p.in.build(int64(len(text)))
}

// name reads %(name) and makes the value of that name the next argument.
func (p *percentFormat) name() error {
	if p.pos >= len(p.format) || p.format[p.pos] != '(' {
		return nil
	}
	if p.named == nil {
		return typeErrorf("format requires a mapping")
	}
	depth, start := 1, p.pos+1
	for p.pos++; p.pos < len(p.format) && depth > 0; p.pos++ {
		switch p.format[p.pos] {
		case '(':
			depth++
		case ')':
			depth--
		}
	}
	if depth > 0 {
		return valueErrorf("incomplete format key")
	}
	key := Str(p.format[start : p.pos-1])
	v, ok, err := p.in.subscript(p.named, key)
	if err != nil {
		return err
	}
	if _, isDict := p.named.(*Dict); !ok && !isDict {
		return typeErrorf("%s indices must be integers or slices, not str", p.named.typeName())
	}
	if !ok {
		return runtimeErrorf("KeyError", "%s", reprString(string(key)))
	}
	p.args, p.next = []Value{v}, 0
	return nil
}

func (p *percentFormat) flags(spec *formatSpec) {
	for ; p.pos < len(p.format); p.pos++ {
		switch p.format[p.pos] {
		case '-':
			spec.align = '<'
		case '+':
			spec.sign = '+'
		case ' ':
			if spec.sign == 0 {
				spec.sign = ' '
			}
		case '#':
			spec.alternate = true
		case '0':
			spec.zero = true
		default:
			return
		}
	}
}

// number reads a width or a precision, which a star takes from the arguments.
func (p *percentFormat) number() (int64, error) {
	if p.pos < len(p.format) && p.format[p.pos] == '*' {
		p.pos++
		v, err := p.arg()
		if err != nil {
			return 0, err
		}
		n, ok := asInt(v)
		if !ok {
			return 0, typeErrorf("* wants int")
		}
		return max(n, -1<<40), nil
	}
	n := int64(0)
	for ; p.pos < len(p.format) && isDecimal(p.format[p.pos]); p.pos++ {
		if n = n*10 + int64(p.format[p.pos]-'0'); n > 1<<31 {
			return 0, valueErrorf("width too big")
		}
	}
	return n, nil
}

func (p *percentFormat) value(spec *formatSpec, v Value) (string, error) {
	switch spec.kind {
	case 's', 'r', 'a':
		return p.text(spec, v)
	case 'c':
		return p.char(spec, v)
	case 'd', 'i', 'u', 'o', 'x', 'X':
		return p.integer(spec, v)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if u, ok := v.(undefined); ok {
			return "", u.error()
		}
		f, err := toFloat(v)
		if _, isStr := asString(v); isStr && !p.safe || errorType(err) == "TypeError" {
			return "", typeErrorf("must be real number, not %s", v.typeName())
		}
		if err != nil {
			return "", err
		}
		return spec.padNumber(spec.float(f)), nil
	}
	r, _ := utf8.DecodeRuneInString(p.format[p.pos-1:])
	return "", valueErrorf("unsupported format character '%c' (0x%x) at index %d", r, r, utf8.RuneCountInString(p.format[:p.pos-1]))
}

// padNumber pads a number, with zeros after the sign where the format says so.
func (s *formatSpec) padNumber(text string) string {
	if s.zero && s.align == 0 {
		s.fill, s.align = "0", '='
	}
	return s.pad(text, '>')
}

func (p *percentFormat) text(spec *formatSpec, v Value) (string, error) {
	var text string
	var err error
	if spec.kind == 's' {
		text, err = p.in.str(v)
	} else {
		text, err = p.in.repr(v)
	}
	if err != nil {
		return "", err
	}
	if spec.kind == 'a' {
		text = asciiString(text)
	}
	if _, safe := v.(markup); p.safe && !(safe && spec.kind == 's') {
		m, err := p.in.escapeText(text)
		if err != nil {
			return "", err
		}
		text = string(m)
	}
	if spec.precision >= 0 {
		text = text[:runeOffset(text, int(spec.precision))]
	}
	return spec.pad(text, '>'), nil
}

func (p *percentFormat) char(spec *formatSpec, v Value) (string, error) {
	if p.safe {
		return "", typeErrorf("%%c requires int or char")
	}
	if s, ok := asString(v); ok && utf8.RuneCountInString(s) == 1 {
		return spec.pad(s, '>'), nil
	}
	i, ok := asInt(v)
	if _, isBig := v.(bigInt); !ok && !isBig {
		return "", typeErrorf("%%c requires int or char")
	} else if isBig {
		i = -1
	}
	if i < 0 || i > utf8.MaxRune {
		return "", runtimeErrorf("OverflowError", "%%c arg not in range(0x110000)")
	}
	return spec.pad(string(rune(i)), '>'), nil
}

func (p *percentFormat) integer(spec *formatSpec, v Value) (string, error) {
	if f, ok := v.(Float); ok && strings.IndexByte("diu", spec.kind) >= 0 {
		var err error
		if v, err = floatToInt(float64(f)); err != nil {
			return "", err
		}
	}
	if u, ok := v.(undefined); ok && strings.IndexByte("diu", spec.kind) >= 0 {
		return "", u.error()
	}
	i, ok := asBig(v)
	if s, isStr := asString(v); isStr && p.safe && strings.IndexByte("diu", spec.kind) >= 0 {
		parsed, err := toInt(Str(s)) // a value in a safe string is wrapped in an object that int() can convert
		if err != nil {
			return "", err
		}
		i, ok = asBig(parsed)
	}
	if !ok {
		if strings.IndexByte("diu", spec.kind) >= 0 {
			return "", typeErrorf("%%%c format: a real number is required, not %s", spec.kind, v.typeName())
		}
		return "", typeErrorf("%%%c format: an integer is required, not %s", spec.kind, v.typeName())
	}
	digits := &formatSpec{kind: spec.kind, sign: spec.sign, alternate: spec.alternate}
	text, err := digits.integer(new(big.Int).Set(i))
	if err != nil {
		return "", err
	}
	n := signLength(text)
	if missing := int(spec.precision) - (len(text) - n); missing > 0 {
		text = text[:n] + strings.Repeat("0", missing) + text[n:]
	}
	return spec.padNumber(text), nil
}
