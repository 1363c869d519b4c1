package chat

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// braceFormat is one run of Python's str.format.
type braceFormat struct {
	in     *interp
	args   []Value
	named  Value // the mapping of keyword arguments
	next   int   // the number of the next {}
	manual bool  // there was a numbered field
	safe   bool  // the format is marked safe: what is put in is escaped
}

func formatMethod(in *interp, a *arguments) (Value, error) {
	named := a.keywords
	if named == nil {
		named = &Dict{}
	}
	return in.formatString(a.self, a.rest, named)
}

func formatMapMethod(in *interp, a *arguments) (Value, error) {
	return in.formatString(a.self, nil, a.v[0])
}

func (in *interp) formatString(self Value, args []Value, named Value) (Value, error) {
	f := &braceFormat{in: in, args: args, named: named}
	_, f.safe = self.(markup)
	s, _ := asString(self)
	text, err := f.run(s, 2)
	if err != nil {
		return nil, err
	}
	return like(self, text), nil
}

// run writes a format string. Formats may hold fields themselves, to the given depth.
func (f *braceFormat) run(s string, depth int) (string, error) {
	if depth < 0 {
		return "", valueErrorf("Max string recursion exceeded")
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		c := s[i]
		s = s[i+1:]
		switch {
		case strings.HasPrefix(s, string(c)):
			b.WriteByte(c)
			s = s[1:]
			continue
		case c == '}':
			return "", valueErrorf("Single '}' encountered in format string")
		case s == "":
			return "", valueErrorf("Single '{' encountered in format string")
		}
		end := fieldEnd(s)
		if end < 0 {
			return "", valueErrorf("expected '}' before end of string")
		}
		text, err := f.field(s[:end], depth)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		s = s[end+1:]
		if err := f.in.build(int64(len(text))); err != nil {
			return "", err
		}
	}
	return b.String(), f.in.build(int64(b.Len()))
}

// fieldEnd is where the field that s begins with ends, or -1. Brackets of an index hide braces.
func fieldEnd(s string) int {
	depth := 1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[':
			if depth == 1 && !strings.ContainsAny(s[:i], ":!") {
				if end := strings.IndexByte(s[i:], ']'); end >= 0 {
					i += end
				}
			}
		case '{':
			depth++
		case '}':
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// field writes one field: name, !conversion and :format.
func (f *braceFormat) field(s string, depth int) (string, error) {
	name, conversion, format := splitField(s)
	v, err := f.value(name)
	if err != nil {
		return "", err
	}
	if v, err = f.convert(v, conversion); err != nil {
		return "", err
	}
	if format, err = f.run(format, depth-1); err != nil {
		return "", err
	}
	if _, safe := v.(markup); f.safe && safe && format != "" {
		return "", valueErrorf("Unsupported format specification for Markup.")
	}
	text, err := f.in.format(v, format)
	if err != nil {
		return "", err
	}
	if _, safe := v.(markup); f.safe && !safe {
		m, err := f.in.escapeText(text)
		return string(m), err
	}
	return text, nil
}

func splitField(s string) (name, conversion, format string) {
	bracket := false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case c == ':' && !bracket:
			return s[:i], "", s[i+1:]
		case c == '!' && !bracket:
			conversion = s[i+1:]
			if j := strings.IndexByte(conversion, ':'); j >= 0 {
				return s[:i], conversion[:j], conversion[j+1:]
			}
			return s[:i], conversion, ""
		}
	}
	return s, "", ""
}

func (f *braceFormat) convert(v Value, conversion string) (Value, error) {
	switch conversion {
	case "":
		return v, nil
	case "s":
		s, err := f.in.str(v)
		return Str(s), err
	case "r", "a":
		s, err := f.in.repr(v)
		if conversion == "a" {
			s = asciiString(s)
		}
		return Str(s), err
	}
	return nil, valueErrorf("Unknown conversion specifier %s", conversion)
}

// value finds what a field names: an argument, and then attributes and items of it.
func (f *braceFormat) value(name string) (Value, error) {
	first := name
	if i := strings.IndexAny(name, ".["); i >= 0 {
		first = name[:i]
	}
	v, err := f.argument(first, first == name)
	if err != nil {
		return nil, err
	}
	for rest := name[len(first):]; rest != ""; {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			if end == 0 {
				return nil, valueErrorf("Empty attribute in format string")
			}
			if v, err = f.in.attribute(v, rest[1:1+end]); err != nil {
				return nil, err
			}
			rest = rest[1+end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 {
			return nil, valueErrorf("Missing ']' in format string")
		}
		index := Value(Str(rest[1:end]))
		if i, err := strconv.ParseUint(rest[1:end], 10, 63); err == nil {
			index = Int(i)
		}
		if v, err = f.in.item(v, index); err != nil {
			return nil, err
		}
		rest = rest[end+1:]
	}
	return v, nil
}

// argument is the argument with the given number or name. Only fields that are nothing but a number, or empty, count
// as a choice between numbering by hand and automatically.
func (f *braceFormat) argument(name string, whole bool) (Value, error) {
	i, err := strconv.ParseUint(name, 10, 31)
	numbered := err == nil
	switch {
	case name == "" && whole:
		if f.manual {
			return nil, valueErrorf("cannot switch from manual field specification to automatic field numbering")
		}
		i, numbered = uint64(f.next), true
		f.next++
	case numbered && whole:
		if f.next > 0 {
			return nil, valueErrorf("cannot switch from manual field specification to automatic field numbering")
		}
		f.manual = true
	}
	if numbered {
		if i >= uint64(len(f.args)) {
			return nil, runtimeErrorf("IndexError", "Replacement index %d out of range for positional args tuple", i)
		}
		return f.args[i], nil
	}
	v, ok, err := f.in.subscript(f.named, Str(name))
	if err == nil && !ok {
		err = runtimeErrorf("KeyError", "%s", reprString(name))
	}
	return v, err
}

// format is Python's format(v, spec).
func (in *interp) format(v Value, spec string) (string, error) {
	if spec == "" {
		return in.str(v)
	}
	s, ok := parseSpec(spec)
	text, isStr := asString(v)
	if !isStr && !isNumber(v) {
		return "", typeErrorf("unsupported format string passed to %s.__format__", v.typeName())
	}
	if !ok {
		return "", valueErrorf("Invalid format specifier")
	}
	if err := in.check(s); err != nil {
		return "", err
	}
	if isStr {
		return s.formatText(text)
	}
	return s.formatNumber(v)
}

// parseSpec reads [[fill]align][sign][z][#][0][width][grouping][.precision][type].
func parseSpec(spec string) (*formatSpec, bool) {
	s := &formatSpec{fill: " ", precision: -1}
	isAlign := func(c byte) bool { return strings.IndexByte("<>=^", c) >= 0 }
	_, n := utf8.DecodeRuneInString(spec)
	switch {
	case len(spec) > n && isAlign(spec[n]):
		s.fill, s.align, spec = spec[:n], spec[n], spec[n+1:]
	case isAlign(spec[0]):
		s.align, spec = spec[0], spec[1:]
		fallthrough
	default:
		n = 0 // no fill was given
	}
	take := func(set string) byte {
		if spec == "" || strings.IndexByte(set, spec[0]) < 0 {
			return 0
		}
		c := spec[0]
		spec = spec[1:]
		return c
	}
	if c := take("+- "); c != '-' {
		s.sign = c
	}
	s.noMinusZero = take("z") != 0
	s.alternate = take("#") != 0
	if n == 0 && take("0") != 0 {
		s.fill = "0"
		if s.align == 0 {
			s.zero, s.align = true, '='
		}
	}
	ok := true
	number := func() int64 {
		n := 0
		for n < len(spec) && isDecimal(spec[n]) {
			n++
		}
		i, err := strconv.ParseInt(spec[:n], 10, 32)
		ok = ok && err == nil
		spec = spec[n:]
		return i
	}
	if spec != "" && isDecimal(spec[0]) {
		s.width = number()
	}
	s.group = take(",_")
	if take(".") != 0 {
		s.precision = number()
	}
	s.kind = take("bcdeEfFgGnosxX%")
	return s, ok && spec == ""
}

func (s *formatSpec) formatText(text string) (string, error) {
	if s.kind != 0 && s.kind != 's' {
		return "", valueErrorf("Unknown format code '%c' for object of type 'str'", s.kind)
	}
	if s.sign != 0 || s.noMinusZero || s.alternate || s.group != 0 || s.align == '=' && !s.zero {
		return "", valueErrorf("not allowed in string format specifier")
	}
	if s.align == '=' {
		s.align = '<'
	}
	if s.precision >= 0 {
		text = text[:runeOffset(text, int(s.precision))]
	}
	return s.pad(text, '<'), nil
}

func (s *formatSpec) formatNumber(v Value) (string, error) {
	f, isFloat := v.(Float)
	switch s.kind {
	case 'b', 'c', 'd', 'o', 'x', 'X':
		if isFloat {
			return "", valueErrorf("Unknown format code '%c' for object of type 'float'", s.kind)
		}
	case 's':
		return "", valueErrorf("Unknown format code 's' for object of type '%s'", v.typeName())
	case 0, 'n':
	default:
		if !isFloat {
			x, err := toFloat(v)
			if err != nil {
				return "", err
			}
			f, isFloat = Float(x), true
		}
	}
	if isFloat {
		return s.pad(s.float(float64(f)), '>'), nil
	}
	if s.noMinusZero {
		return "", valueErrorf("Negative zero coercion (z) not allowed in integer format specifier")
	}
	if s.precision >= 0 {
		return "", valueErrorf("Precision not allowed in integer format specifier")
	}
	i, _ := asBig(v)
	if s.kind == 'c' {
		if !i.IsInt64() || i.Int64() < 0 || i.Int64() > utf8.MaxRune {
			return "", runtimeErrorf("OverflowError", "%%c arg not in range(0x110000)")
		}
		return s.pad(string(rune(i.Int64())), '<'), nil
	}
	text, err := s.integer(i)
	if err != nil {
		return "", err
	}
	return s.pad(text, '>'), nil
}
