package chat

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// FromJSON reads one JSON value as Python's json.loads does: the order of keys is kept, and a number is an int unless
// it is written with a fraction or an exponent. Of a key that occurs twice the last value counts.
func FromJSON(data []byte) (Value, error) {
	d := jsontext.NewDecoder(strings.NewReader(string(data)), jsontext.AllowDuplicateNames(true))
	v, err := decodeValue(d)
	if err != nil {
		return nil, fmt.Errorf("decode JSON value: %w", err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("decode JSON value: data after offset %d", d.InputOffset())
	}
	return v, nil
}

func decodeValue(d *jsontext.Decoder) (Value, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return None{}, nil
	case 't', 'f':
		return Bool(t.Bool()), nil
	case '"':
		return Str(t.String()), nil
	case '0':
		return decodeNumber(t.String())
	case '[':
		return decodeList(d)
	}
	return decodeDict(d)
}

func decodeNumber(text string) (Value, error) {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !math.IsInf(f, 0) {
			return nil, err
		}
		return Float(f), nil
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int(i), nil
	}
	if len(text) > maxIntDigits {
		return nil, fmt.Errorf("integer of %d digits exceeds the limit of %d", len(text), maxIntDigits)
	}
	i, _ := new(big.Int).SetString(text, 10)
	return normalizeInt(i), nil
}

func decodeList(d *jsontext.Decoder) (Value, error) {
	l := &List{Items: []Value{}}
	for d.PeekKind() != ']' {
		v, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	_, err := d.ReadToken()
	return l, err
}

func decodeDict(d *jsontext.Decoder) (Value, error) {
	m := &Dict{}
	for d.PeekKind() != '}' {
		k, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := k.String()
		v, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		m.Set(key, v)
	}
	_, err := d.ReadToken()
	return m, err
}

// FromGo makes a Value of plain Go data: nil, bool, int, int64, float64, string, []any, []string, map[string]any, and
// any Value. Go maps have no order, so their keys are sorted. It panics for other types.
func FromGo(v any) Value {
	switch v := v.(type) {
	case nil:
		return None{}
	case Value:
		return v
	case bool:
		return Bool(v)
	case int:
		return Int(v)
	case int64:
		return Int(v)
	case float64:
		return Float(v)
	case string:
		return Str(v)
	case []any:
		l := &List{Items: make([]Value, len(v))}
		for i, item := range v {
			l.Items[i] = FromGo(item)
		}
		return l
	case []string:
		l := &List{Items: make([]Value, len(v))}
		for i, item := range v {
			l.Items[i] = Str(item)
		}
		return l
	case map[string]any:
		d := &Dict{}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			d.Set(k, FromGo(v[k]))
		}
		return d
	}
	panic(fmt.Sprintf("chat.FromGo: no value for a %T", v))
}
