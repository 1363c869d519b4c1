package chat

import "math"

func listMethods() map[string]*native {
	return merge(tupleMethods(), map[string]*native{
		"copy": fn("", func(in *interp, a *arguments) (Value, error) {
			items, err := in.collect(a.self)
			return &List{items}, err
		}),
	})
}

// tupleMethods are those that lists, tuples and ranges have in common.
func tupleMethods() map[string]*native {
	return merge(map[string]*native{
		"count": fn("/ value", func(in *interp, a *arguments) (Value, error) {
			items, err := in.collect(a.self)
			n := 0
			for _, item := range items {
				same, err := in.same(item, a.v[0])
				if err != nil {
					return nil, err
				}
				if same {
					n++
				}
			}
			return Int(n), err
		}),
		"index": fn("/ value start? stop?", sequenceIndex),
	})
}

func sequenceIndex(in *interp, a *arguments) (Value, error) {
	items, err := in.collect(a.self)
	if err != nil {
		return nil, err
	}
	start, stop, _, err := sliceBounds([3]Value{a.or(1, None{}), a.or(2, None{}), None{}}, int64(len(items)))
	if err != nil {
		return nil, err
	}
	for i := start; i < stop; i++ {
		same, err := in.same(items[i], a.v[0])
		if err != nil {
			return nil, err
		}
		if same {
			return Int(i), nil
		}
	}
	return nil, valueErrorf("%s is not in %s", shortRepr(a.v[0]), a.self.typeName())
}

func dictMethods() map[string]*native {
	view := func(kind string) *native {
		return fn("", func(_ *interp, a *arguments) (Value, error) { return dictView{kind, a.self.(*Dict)}, nil })
	}
	return merge(map[string]*native{
		"keys":   view("keys"),
		"values": view("values"),
		"items":  view("items"),
		"get": fn("/ key default?", func(in *interp, a *arguments) (Value, error) {
			v, ok, err := in.getItem(a.self.(*Dict), a.v[0])
			if err != nil || ok {
				return v, err
			}
			return a.or(1, None{}), nil
		}),
		"copy": fn("", func(in *interp, a *arguments) (Value, error) {
			d := a.self.(*Dict)
			return d.copy(), in.build(int64(d.Len()) * 2 * elementBytes)
		}),
		"fromkeys": fn("/ iterable value?", func(in *interp, a *arguments) (Value, error) {
			keys, err := in.collect(a.v[0])
			if err != nil {
				return nil, err
			}
			d := &Dict{}
			for _, k := range keys {
				if err := in.setItem(d, k, a.or(1, None{})); err != nil {
					return nil, err
				}
			}
			return d, nil
		}),
	})
}

// setMethods are the methods of dict views that need no set to be made.
func setMethods() map[string]*native {
	return merge(map[string]*native{
		"isdisjoint": fn("/ other", func(in *interp, a *arguments) (Value, error) {
			items, err := in.collect(a.v[0])
			if err != nil {
				return nil, err
			}
			for _, item := range items {
				if found, err := in.contains(a.self, item); err != nil || found {
					return Bool(false), err
				}
			}
			return Bool(true), nil
		}),
	})
}

func bytesMethods() map[string]*native {
	return merge(map[string]*native{
		"decode": fn("encoding? errors?", func(in *interp, a *arguments) (Value, error) {
			s := string(a.self.(bytesValue))
			return Str(s), in.build(int64(len(s)))
		}),
	})
}

func intMethods() map[string]*native {
	return merge(map[string]*native{
		"bit_length": fn("", func(_ *interp, a *arguments) (Value, error) {
			i, _ := asBig(a.self)
			return Int(i.BitLen()), nil
		}),
		"conjugate": fn("", func(_ *interp, a *arguments) (Value, error) { return toInt(a.self) }),
	})
}

func floatMethods() map[string]*native {
	return merge(map[string]*native{
		"is_integer": fn("", func(_ *interp, a *arguments) (Value, error) {
			f := float64(a.self.(Float))
			return Bool(f == math.Trunc(f) && !math.IsInf(f, 0)), nil
		}),
		"conjugate": fn("", func(_ *interp, a *arguments) (Value, error) { return a.self, nil }),
	})
}
