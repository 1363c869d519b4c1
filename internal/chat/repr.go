package chat

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxIntDigits is how many digits of an int Python is willing to print.
const maxIntDigits = 4300

// str is Python's str(v).
func (in *interp) str(v Value) (string, error) {
	switch v := v.(type) {
	case Str:
		return string(v), nil
	case markup:
		return string(v), nil
	case undefined:
		return "", nil
	}
	return in.repr(v)
}

// repr is Python's repr(v).
func (in *interp) repr(v Value) (string, error) {
	var b strings.Builder
	err := in.writeRepr(&b, v)
	return b.String(), err
}

func (in *interp) writeRepr(b *strings.Builder, v Value) error {
	if err := in.enter(); err != nil {
		return err
	}
	defer in.leave()
	if id, short := container(v); id != nil {
		if slices.Contains(in.printing, id) {
			b.WriteString(short)
			return nil
		}
		in.printing = append(in.printing, id)
		defer func() { in.printing = in.printing[:len(in.printing)-1] }()
	}
	switch v := v.(type) {
	case *List:
		return in.reprItems(b, "[", v.Items, "]")
	case tuple:
		return in.reprTuple(b, v)
	case *group:
		return in.reprTuple(b, tuple{v.key, v.list})
	case *Dict:
		return in.reprDict(b, v)
	case dictView:
		items, err := in.drain(v.iterate())
		if err != nil {
			return err
		}
		return in.reprItems(b, "dict_"+v.kind+"([", items, "])")
	case *namespace:
		b.WriteString("<Namespace ")
		if err := in.writeRepr(b, v.attrs); err != nil {
			return err
		}
		b.WriteByte('>')
		return nil
	case markup:
		b.WriteString("Markup(")
		err := in.reprText(b, string(v))
		b.WriteByte(')')
		return err
	case Str:
		return in.reprText(b, string(v))
	}
	s, err := in.scalarRepr(v)
	b.WriteString(s)
	if err != nil {
		return err
	}
	return in.build(int64(len(s)))
}

func (in *interp) reprText(b *strings.Builder, s string) error {
	const widest = 4 // bytes that an escape has for each byte of what it stands for
	if err := in.build(int64(len(s)) * widest); err != nil {
		return err
	}
	b.WriteString(reprString(s))
	return nil
}

// container is what tells a container from others, and how it is printed inside itself; only a namespace can bring
// that about.
func container(v Value) (id any, inside string) {
	switch v := v.(type) {
	case *List:
		return v, "[...]"
	case *Dict:
		return v, "{...}"
	case tuple:
		if len(v) > 0 {
			return &v[0], "(...)"
		}
	}
	return nil, ""
}

// scalarRepr is the repr of what holds no other values. What Python prints with an address is printed without.
func (in *interp) scalarRepr(v Value) (string, error) {
	switch v := v.(type) {
	case None:
		return "None", nil
	case Bool:
		if v {
			return "True", nil
		}
		return "False", nil
	case Int:
		return strconv.FormatInt(int64(v), 10), nil
	case bigInt:
		return intDigits(v.i)
	case Float:
		return reprFloat(float64(v)), nil
	case bytesValue:
		return reprBytes(string(v)), nil
	case undefined:
		return "Undefined", nil
	case rangeValue:
		if v.step == 1 {
			return fmt.Sprintf("range(%d, %d)", v.start, v.stop), nil
		}
		return fmt.Sprintf("range(%d, %d, %d)", v.start, v.stop, v.step), nil
	case *macroValue:
		if v.def.name == "" {
			return "<Macro anonymous>", nil
		}
		return "<Macro " + reprString(v.def.name) + ">", nil
	case *loopContext:
		n, err := v.length()
		return fmt.Sprintf("<LoopContext %d/%d>", v.index0+1, n), err
	case *function:
		return "<function " + v.native.name + ">", nil
	}
	return "<" + v.typeName() + " object>", nil
}

func (in *interp) reprItems(b *strings.Builder, open string, items []Value, end string) error {
	b.WriteString(open)
	for i, item := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := in.writeRepr(b, item); err != nil {
			return err
		}
	}
	b.WriteString(end)
	return nil
}

func (in *interp) reprTuple(b *strings.Builder, items tuple) error {
	if len(items) == 1 {
		return in.reprItems(b, "(", items, ",)")
	}
	return in.reprItems(b, "(", items, ")")
}

func (in *interp) reprDict(b *strings.Builder, d *Dict) error {
	b.WriteByte('{')
	for i, k := range d.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := in.writeRepr(b, k); err != nil {
			return err
		}
		b.WriteString(": ")
		if err := in.writeRepr(b, d.values[i]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// intDigits is an int in decimal. Python refuses ints with too many digits, for it takes long to print them.
func intDigits(i *big.Int) (string, error) {
	s := i.String()
	if len(strings.TrimPrefix(s, "-")) > maxIntDigits {
		return "", valueErrorf("Exceeds the limit (%d digits) for integer string conversion;"+
			" use sys.set_int_max_str_digits() to increase the limit", maxIntDigits)
	}
	return s, nil
}

// reprFloat is the shortest decimal that reads back as f, spelled as Python does.
func reprFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64) // Go also writes at least two digits of exponent
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if strings.IndexByte(s, '.') < 0 {
		s += ".0"
	}
	return s
}

// reprString is the repr of a str: in single quotes unless it holds those and no double ones.
func reprString(s string) string {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte(quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case isPrintable(r):
			b.WriteRune(r)
		default:
			writeUnicodeEscape(&b, r)
		}
	}
	b.WriteByte(quote)
	return b.String()
}

func writeUnicodeEscape(b *strings.Builder, r rune) {
	switch {
	case r < 0x100:
		fmt.Fprintf(b, `\x%02x`, r)
	case r < 0x10000:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// asciiString is Python's ascii() of a str: its repr with what is not ASCII escaped.
func asciiString(repr string) string {
	var b strings.Builder
	for _, r := range repr {
		if r < utf8.RuneSelf {
			b.WriteByte(byte(r))
		} else {
			writeUnicodeEscape(&b, r)
		}
	}
	return b.String()
}

func isPrintable(r rune) bool { return r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r) }

func reprBytes(s string) string {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	var b strings.Builder
	b.WriteString("b" + string(quote))
	for i := range len(s) {
		switch c := s[i]; {
		case c == quote || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte(quote)
	return b.String()
}

// shortRepr is the repr of a value for messages: of a container only its type.
func shortRepr(v Value) string {
	switch v := v.(type) {
	case Str:
		return reprString(string(v))
	case markup:
		return reprString(string(v))
	case None, Bool, Int, Float:
		s, _ := (&interp{}).scalarRepr(v)
		return s
	case nil:
		return "None"
	}
	return v.typeName()
}

func lineText(line int) string { return "line " + strconv.Itoa(line) }
