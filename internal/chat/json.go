package chat

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonWriter is Python's json.dumps.
type jsonWriter struct {
	in        *interp
	b         strings.Builder
	ascii     bool
	sortKeys  bool
	indent    string // of one level
	newlines  bool
	comma     string
	colon     string
	charged   int
	nestDepth int
}

// tojson is the filter as transformers defines it.
func tojson(in *interp, a *arguments) (Value, error) {
	w := &jsonWriter{
		in: in, comma: ", ", colon: ": ",
		ascii:    truth(a.or(1, Bool(false))),
		sortKeys: truth(a.or(4, Bool(false))),
	}
	if err := w.setIndent(a.or(2, None{})); err != nil {
		return nil, err
	}
	if err := w.setSeparators(a.or(3, None{})); err != nil {
		return nil, err
	}
	if err := w.value(a.v[0]); err != nil {
		return nil, err
	}
	return Str(w.b.String()), nil
}

func (w *jsonWriter) setIndent(v Value) error {
	if _, none := v.(None); none {
		return nil
	}
	w.newlines, w.comma = true, ","
	if s, ok := asString(v); ok {
		w.indent = s
		return nil
	}
	n, ok := asInt(v)
	if !ok {
		return typeErrorf("can't multiply sequence by non-int of type '%s'", v.typeName())
	}
	n = max(n, 0)
	if err := w.in.build(n); err != nil {
		return err
	}
	w.indent = strings.Repeat(" ", int(n))
	return nil
}

func (w *jsonWriter) setSeparators(v Value) error {
	if _, none := v.(None); none {
		return nil
	}
	parts, err := w.in.unpack(v, 2)
	if err != nil {
		return err
	}
	var ok [2]bool
	w.comma, ok[0] = asString(parts[0])
	w.colon, ok[1] = asString(parts[1])
	if !ok[0] || !ok[1] {
		return typeErrorf("separators must be strings")
	}
	return nil
}

// charge counts what was written since the last time.
func (w *jsonWriter) charge() error {
	n := w.b.Len() - w.charged
	w.charged = w.b.Len()
	return w.in.build(int64(n))
}

func (w *jsonWriter) value(v Value) error {
	if err := w.in.enter(); err != nil {
		return err
	}
	defer w.in.leave()
	switch v := v.(type) {
	case *List:
		return w.items(v.Items)
	case tuple:
		return w.items(v)
	case *group:
		return w.items([]Value{v.key, v.list})
	case *Dict:
		return w.object(v)
	case Str:
		return w.string(string(v))
	case markup:
		return w.string(string(v))
	default:
		text, err := jsonScalar(v)
		if err != nil {
			return err
		}
		w.b.WriteString(text)
	}
	return w.charge()
}

// jsonScalar is a value other than a string or a container.
func jsonScalar(v Value) (string, error) {
	switch v := v.(type) {
	case None:
		return "null", nil
	case Bool:
		return strconv.FormatBool(bool(v)), nil
	case Int:
		return strconv.FormatInt(int64(v), 10), nil
	case bigInt:
		return intDigits(v.i)
	case Float:
		switch f := float64(v); {
		case math.IsNaN(f):
			return "NaN", nil
		case math.IsInf(f, 0):
			return strings.Replace(reprFloat(f), "inf", "Infinity", 1), nil
		default:
			return reprFloat(f), nil
		}
	}
	return "", typeErrorf("Object of type %s is not JSON serializable", v.typeName())
}

func (w *jsonWriter) newline() error {
	if !w.newlines {
		return nil
	}
	if err := w.in.build(int64(w.nestDepth) * int64(len(w.indent))); err != nil {
		return err
	}
	w.b.WriteByte('\n')
	for range w.nestDepth {
		w.b.WriteString(w.indent)
	}
	return nil
}

func (w *jsonWriter) items(items []Value) error {
	if len(items) == 0 {
		w.b.WriteString("[]")
		return w.charge()
	}
	w.b.WriteByte('[')
	w.nestDepth++
	for i, item := range items {
		if i > 0 {
			w.b.WriteString(w.comma)
		}
		if err := w.newline(); err != nil {
			return err
		}
		if err := w.value(item); err != nil {
			return err
		}
	}
	w.nestDepth--
	if err := w.newline(); err != nil {
		return err
	}
	w.b.WriteByte(']')
	return w.charge()
}

func (w *jsonWriter) object(d *Dict) error {
	if d.Len() == 0 {
		w.b.WriteString("{}")
		return w.charge()
	}
	keys, values := d.keys, d.values
	if w.sortKeys {
		var err error
		if keys, values, err = w.sorted(d); err != nil {
			return err
		}
	}
	w.b.WriteByte('{')
	w.nestDepth++
	for i, k := range keys {
		if i > 0 {
			w.b.WriteString(w.comma)
		}
		if err := w.newline(); err != nil {
			return err
		}
		if err := w.key(k); err != nil {
			return err
		}
		w.b.WriteString(w.colon)
		if err := w.value(values[i]); err != nil {
			return err
		}
	}
	w.nestDepth--
	if err := w.newline(); err != nil {
		return err
	}
	w.b.WriteByte('}')
	return w.charge()
}

func (w *jsonWriter) sorted(d *Dict) (keys, values []Value, err error) {
	if keys, err = w.in.sortBy(d.keys, d.keys, false); err != nil {
		return nil, nil, err
	}
	values, err = w.in.sortBy(d.values, d.keys, false)
	return keys, values, err
}

// key writes a key as a string, which is how JSON has them all.
func (w *jsonWriter) key(k Value) error {
	if s, ok := asString(k); ok {
		return w.string(s)
	}
	text, err := jsonScalar(k)
	if err != nil {
		return typeErrorf("keys must be str, int, float, bool or None, not %s", k.typeName())
	}
	return w.string(text)
}

func (w *jsonWriter) string(s string) error {
	if err := w.in.build(int64(len(s))); err != nil {
		return err
	}
	w.b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(r)
		case r == '\n':
			w.b.WriteString(`\n`)
		case r == '\r':
			w.b.WriteString(`\r`)
		case r == '\t':
			w.b.WriteString(`\t`)
		case r == '\b':
			w.b.WriteString(`\b`)
		case r == '\f':
			w.b.WriteString(`\f`)
		case r < ' ' || w.ascii && r > '~' && r < 0x10000:
			fmt.Fprintf(&w.b, `\u%04x`, r)
		case w.ascii && r >= utf8.RuneSelf:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&w.b, `\u%04x\u%04x`, hi, lo)
		default:
			w.b.WriteRune(r)
		}
	}
	w.b.WriteByte('"')
	return w.charge()
}
