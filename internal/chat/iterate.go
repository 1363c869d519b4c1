package chat

import "unicode/utf8"

// iterator gives the next item, or false when there is none.
type iterator func() (Value, bool, error)

func sliceIterator(items []Value) iterator {
	i := 0
	return func() (Value, bool, error) {
		if i >= len(items) {
			return nil, false, nil
		}
		i++
		return items[i-1], true, nil
	}
}

// iterate is Python's iter(v).
func (in *interp) iterate(v Value) (iterator, error) {
	switch v := v.(type) {
	case *List:
		return sliceIterator(v.Items), nil
	case tuple:
		return sliceIterator(v), nil
	case *group:
		return sliceIterator([]Value{v.key, v.list}), nil
	case Str:
		return in.runes(string(v), false), nil
	case markup:
		// Python's str iterator does not know of the subclass.
		return in.runes(string(v), false), nil
	case bytesValue:
		items := make([]Value, len(v))
		for i := range len(v) {
			items[i] = Int(v[i])
		}
		return sliceIterator(items), in.build(int64(len(v)) * elementBytes)
	case *Dict:
		return sliceIterator(v.keys), nil
	case dictView:
		return v.iterate(), nil
	case rangeValue:
		i, n := int64(0), v.len()
		return func() (Value, bool, error) {
			if i >= n {
				return nil, false, nil
			}
			i++
			return v.at(i - 1), true, in.step(1)
		}, nil
	case *generator:
		// Generators may be made of one another, as deep as a template likes.
		return func() (Value, bool, error) {
			if err := in.enter(); err != nil {
				return nil, false, err
			}
			defer in.leave()
			return v.next()
		}, nil
	case *loopContext:
		return func() (Value, bool, error) {
			item, ok, err := v.advance()
			return tuple{item, v}, ok, err
		}, nil
	case undefined:
		return sliceIterator(nil), nil
	}
	return nil, typeErrorf("'%s' object is not iterable", v.typeName())
}

func (in *interp) runes(s string, safe bool) iterator {
	return func() (Value, bool, error) {
		if s == "" {
			return nil, false, nil
		}
		_, n := utf8.DecodeRuneInString(s)
		c := s[:n]
		s = s[n:]
		if safe {
			return markup(c), true, in.step(1)
		}
		return Str(c), true, in.step(1)
	}
}

func (v dictView) iterate() iterator {
	i := 0
	return func() (Value, bool, error) {
		if i >= len(v.dict.keys) {
			return nil, false, nil
		}
		i++
		switch k, x := v.dict.keys[i-1], v.dict.values[i-1]; v.kind {
		case "keys":
			return k, true, nil
		case "values":
			return x, true, nil
		default:
			return tuple{k, x}, true, nil
		}
	}
}

// collect is Python's list(v), as a slice that may be changed.
func (in *interp) collect(v Value) ([]Value, error) {
	next, err := in.iterate(v)
	if err != nil {
		return nil, err
	}
	return in.drain(next)
}

// drain reads all that is left of an iterator.
func (in *interp) drain(next iterator) ([]Value, error) {
	items := []Value{}
	for {
		v, ok, err := next()
		if err != nil || !ok {
			return items, err
		}
		if err := in.build(elementBytes); err != nil {
			return nil, err
		}
		items = append(items, v)
	}
}

// length is Python's len(v).
func (in *interp) length(v Value) (int64, error) {
	switch v := v.(type) {
	case Str:
		return in.countRunes(string(v))
	case markup:
		return in.countRunes(string(v))
	case bytesValue:
		return int64(len(v)), nil
	case *List:
		return int64(len(v.Items)), nil
	case tuple:
		return int64(len(v)), nil
	case *group:
		return 2, nil
	case *Dict:
		return int64(v.Len()), nil
	case dictView:
		return int64(v.dict.Len()), nil
	case rangeValue:
		return v.len(), nil
	case undefined:
		return 0, nil
	case *loopContext:
		return v.length()
	}
	return 0, typeErrorf("object of type '%s' has no len()", v.typeName())
}

func (in *interp) countRunes(s string) (int64, error) {
	return int64(utf8.RuneCountInString(s)), in.scan(len(s))
}

// reversed is Python's reversed(v).
func (in *interp) reversed(v Value) (*generator, error) {
	typ := "reversed"
	var items []Value
	switch v := v.(type) {
	case *List:
		items, typ = v.Items, "list_reverseiterator"
	case tuple:
		items = v
	case *group:
		items = []Value{v.key, v.list}
	case Str, markup:
		var err error
		if items, err = in.collect(v); err != nil {
			return nil, err
		}
	case *Dict:
		items, typ = v.keys, "dict_reversekeyiterator"
	case dictView:
		var err error
		if items, err = in.collect(v); err != nil {
			return nil, err
		}
	case rangeValue:
		n := v.len()
		return &generator{typ: "range_iterator", next: func() (Value, bool, error) {
			if n <= 0 {
				return nil, false, nil
			}
			n--
			return v.at(n), true, in.step(1)
		}}, nil
	case undefined:
	default:
		return nil, typeErrorf("'%s' object is not reversible", v.typeName())
	}
	i := len(items)
	return &generator{typ: typ, next: func() (Value, bool, error) {
		if i == 0 {
			return nil, false, nil
		}
		i--
		return items[i], true, nil
	}}, nil
}
