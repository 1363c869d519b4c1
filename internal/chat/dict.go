package chat

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
)

// Dict is a Python dict: it keeps the order in which keys were first set. The zero Dict is empty and ready for use.
type Dict struct {
	keys, values []Value
	index        map[any]int // from dictKey to the position
}

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// Get is the value of a string key.
func (d *Dict) Get(key string) (Value, bool) {
	i, ok := d.index[key]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// Set sets the value of a string key. A new key goes to the end, an old one keeps its place.
func (d *Dict) Set(key string, v Value) { d.set(Str(key), key, v) }

// All calls yield for each key and value in order until it returns false.
func (d *Dict) All(yield func(key, value Value) bool) {
	for i, k := range d.keys {
		if !yield(k, d.values[i]) {
			return
		}
	}
}

func (d *Dict) set(key Value, hash any, v Value) {
	if i, ok := d.index[hash]; ok {
		d.values[i] = v
		return
	}
	if d.index == nil {
		d.index = map[any]int{}
	}
	d.index[hash] = len(d.keys)
	d.keys = append(d.keys, key)
	d.values = append(d.values, v)
}

// take removes a string key and returns its value.
func (d *Dict) take(key string) (Value, bool) {
	i, ok := d.index[key]
	if !ok {
		return nil, false
	}
	v := d.values[i]
	d.keys = slices.Delete(d.keys, i, i+1)
	d.values = slices.Delete(d.values, i, i+1)
	delete(d.index, key)
	for k, at := range d.index {
		if at > i {
			d.index[k] = at - 1
		}
	}
	return v, true
}

// copy is a dict with the same keys and values.
func (d *Dict) copy() *Dict {
	return &Dict{keys: slices.Clone(d.keys), values: slices.Clone(d.values), index: maps.Clone(d.index)}
}

// setItem is Set for any key; keys that Python cannot hash are an error.
func (b *budget) setItem(d *Dict, key, v Value) error {
	hash, err := b.dictKey(key)
	if err == nil {
		d.set(key, hash, v)
	}
	return err
}

// getItem is Get for any key.
func (b *budget) getItem(d *Dict, key Value) (Value, bool, error) {
	hash, err := b.dictKey(key)
	if err != nil {
		return nil, false, err
	}
	i, ok := d.index[hash]
	if !ok {
		return nil, false, nil
	}
	return d.values[i], true, nil
}

// Kinds of map keys that no Go value of their own stands for.
type (
	noneKey      struct{}
	undefinedKey struct{}
	bigKey       string
	tupleKey     string
	bytesKey     string
)

// dictKey is a Go map key that is equal for values that are equal in Python: 1, 1.0 and True are one key.
func (b *budget) dictKey(v Value) (any, error) {
	switch v := v.(type) {
	case Str:
		return string(v), b.scan(len(v))
	case markup:
		return string(v), b.scan(len(v))
	case None:
		return noneKey{}, nil
	case undefined:
		return undefinedKey{}, nil
	case Bool, Int:
		i, _ := asInt(v)
		return i, nil
	case bigInt:
		return bigKey(v.i.Text(62)), nil
	case bytesValue:
		return bytesKey(v), nil
	case Float:
		if f := float64(v); f == math.Trunc(f) && math.Abs(f) < 1<<63 {
			return int64(f), nil
		}
		return float64(v), nil
	case tuple:
		return b.tupleHash(v)
	case *group:
		return b.tupleHash(tuple{v.key, v.list})
	case *List, *Dict:
		return nil, typeErrorf("unhashable type: '%s'", v.typeName())
	case dictView:
		return nil, typeErrorf("unhashable type: '%s'", v.typeName())
	}
	return v, nil
}

func (b *budget) tupleHash(items []Value) (any, error) {
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.leave()
	var text strings.Builder
	for _, item := range items {
		hash, err := b.dictKey(item)
		if err != nil {
			return nil, err
		}
		part := hashText(hash)
		var n [binary.MaxVarintLen64]byte
		if err := b.build(int64(len(part) + len(n))); err != nil {
			return nil, err
		}
		text.Write(n[:binary.PutUvarint(n[:], uint64(len(part)))])
		text.WriteString(part)
	}
	return tupleKey(text.String()), nil
}

// hashText spells a map key so that different keys have different spellings.
func hashText(hash any) string {
	var n [8]byte
	switch h := hash.(type) {
	case string:
		return "s" + h
	case int64:
		binary.BigEndian.PutUint64(n[:], uint64(h))
		return "i" + string(n[:])
	case float64:
		binary.BigEndian.PutUint64(n[:], math.Float64bits(h))
		return "f" + string(n[:])
	case noneKey:
		return "n"
	case undefinedKey:
		return "u"
	case bigKey:
		return "b" + string(h)
	case bytesKey:
		return "y" + string(h)
	case tupleKey:
		return "t" + string(h)
	}
	return "?"
}
