package gguf

import (
	"errors"
	"fmt"
	"iter"
)

// Metadata is the ordered list of a file's keys and values. It does not depend on the file staying open, and may be
// read by many goroutines at once.
//
// The getters convert between kinds only where nothing is lost: Int and Uint take any integer kind, Float either
// floating-point kind. Their errors name the file and the key; a key that is absent gives ErrMissing. The Or forms
// give a default for an absent key, and still refuse a value of the wrong kind.
type Metadata struct {
	path    string
	entries []entry
	byKey   map[string]int // index into entries
}

type entry struct {
	key   string
	value Value
}

// Len returns the number of keys.
func (m *Metadata) Len() int { return len(m.entries) }

// All yields keys and values in the file's order.
func (m *Metadata) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for _, e := range m.entries {
			if !yield(e.key, e.value) {
				return
			}
		}
	}
}

// Has tells whether the key is present.
func (m *Metadata) Has(key string) bool {
	_, ok := m.byKey[key]
	return ok
}

// Lookup returns the value of a key.
func (m *Metadata) Lookup(key string) (Value, bool) {
	i, ok := m.byKey[key]
	if !ok {
		return Value{}, false
	}
	return m.entries[i].value, true
}

// String returns a string.
func (m *Metadata) String(key string) (string, error) { return get(m, key, "a string", Value.Text) }

// Bool returns a boolean.
func (m *Metadata) Bool(key string) (bool, error) { return get(m, key, "a boolean", Value.Bool) }

// Int returns an integer.
func (m *Metadata) Int(key string) (int64, error) { return get(m, key, "an int64", Value.Int) }

// Uint returns an integer that is not negative.
func (m *Metadata) Uint(key string) (uint64, error) {
	return get(m, key, "a non-negative integer", Value.Uint)
}

// Float returns a floating-point number.
func (m *Metadata) Float(key string) (float64, error) { return get(m, key, "a float", Value.Float) }

// StringOr is String with a default for an absent key.
func (m *Metadata) StringOr(key, absent string) (string, error) {
	return or(m, key, absent, (*Metadata).String)
}

// BoolOr is Bool with a default for an absent key.
func (m *Metadata) BoolOr(key string, absent bool) (bool, error) {
	return or(m, key, absent, (*Metadata).Bool)
}

// IntOr is Int with a default for an absent key.
func (m *Metadata) IntOr(key string, absent int64) (int64, error) {
	return or(m, key, absent, (*Metadata).Int)
}

// UintOr is Uint with a default for an absent key.
func (m *Metadata) UintOr(key string, absent uint64) (uint64, error) {
	return or(m, key, absent, (*Metadata).Uint)
}

// FloatOr is Float with a default for an absent key.
func (m *Metadata) FloatOr(key string, absent float64) (float64, error) {
	return or(m, key, absent, (*Metadata).Float)
}

// Strings returns an array of strings. They share the memory of the metadata: no bytes are copied.
func (m *Metadata) Strings(key string) ([]string, error) {
	return list(m, key, "a string", Value.Text)
}

// Bools returns an array of booleans.
func (m *Metadata) Bools(key string) ([]bool, error) { return list(m, key, "a boolean", Value.Bool) }

// Ints returns an array of integers.
func (m *Metadata) Ints(key string) ([]int64, error) { return list(m, key, "an int64", Value.Int) }

// Uints returns an array of integers that are not negative.
func (m *Metadata) Uints(key string) ([]uint64, error) {
	return list(m, key, "a non-negative integer", Value.Uint)
}

// Floats returns an array of floating-point numbers.
func (m *Metadata) Floats(key string) ([]float64, error) {
	return list(m, key, "a float", Value.Float)
}

// get returns the value of a key as a T; what names T in the error.
func get[T any](m *Metadata, key, what string, as func(Value) (T, bool)) (T, error) {
	v, ok := m.Lookup(key)
	if !ok {
		return *new(T), m.located(key, ErrMissing)
	}
	t, ok := as(v)
	if !ok {
		return t, m.located(key, fmt.Errorf("%s is not %s", v.describe(), what))
	}
	return t, nil
}

// list returns the value of a key as a slice of T.
func list[T any](m *Metadata, key, what string, as func(Value) (T, bool)) ([]T, error) {
	v, ok := m.Lookup(key)
	if !ok {
		return nil, m.located(key, ErrMissing)
	}
	if v.kind != Array {
		return nil, m.located(key, fmt.Errorf("%s is not an array", v.describe()))
	}
	ts := make([]T, 0, v.Len())
	for e := range v.Elements() {
		t, ok := as(e)
		if !ok {
			return nil, m.located(key, fmt.Errorf("element %d: %s is not %s", len(ts), e.describe(), what))
		}
		ts = append(ts, t)
	}
	return ts, nil
}

// or calls getter, and gives the default when the key is absent.
func or[T any](m *Metadata, key string, absent T, getter func(*Metadata, string) (T, error)) (T, error) {
	t, err := getter(m, key)
	if errors.Is(err, ErrMissing) {
		return absent, nil
	}
	return t, err
}

// located names the file and the key.
func (m *Metadata) located(key string, err error) error {
	return fmt.Errorf("read %s: key %q: %w", m.path, key, err)
}

// describe gives the kind of a value, and the value itself where it is short.
func (v Value) describe() string {
	if v.kind == Array || v.kind == String {
		return v.kind.String()
	}
	return fmt.Sprintf("%v %v", v.kind, v)
}
