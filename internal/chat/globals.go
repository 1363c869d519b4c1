package chat

// globalFunctions are the functions that every template can call.
func globalFunctions() map[string]*native {
	return map[string]*native{
		"range":           fn("/ a b? c?", makeRange),
		"dict":            fn("/ iterable? **", makeDict),
		"namespace":       fn("/ iterable? **", makeNamespace),
		"cycler":          fn("/ *", makeCycler),
		"joiner":          fn("sep?", makeJoiner),
		"raise_exception": fn("message", raiseException),
		"strftime_now":    fn("format", strftimeNow),
		"lipsum":          unsupported("lipsum"),
	}
}

func makeRange(in *interp, a *arguments) (Value, error) {
	var n [3]int64
	given := 0
	for i, v := range a.v {
		if v == nil {
			continue
		}
		given++
		x, ok := asInt(v)
		switch v := v.(type) {
		case undefined:
			return nil, typeErrorf("'Undefined' object cannot be interpreted as an integer")
		case bigInt:
			return nil, runtimeErrorf("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
		default:
			if !ok {
				return nil, typeErrorf("'%s' object cannot be interpreted as an integer", v.typeName())
			}
		}
		n[i] = x
	}
	r := rangeValue{n[0], n[1], n[2]}
	switch given {
	case 1:
		r = rangeValue{0, n[0], 1}
	case 2:
		r.step = 1
	}
	if r.step == 0 {
		return nil, valueErrorf("range() arg 3 must not be zero")
	}
	if r.len() > maxRange {
		return nil, runtimeErrorf("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return r, nil
}

// makeDict is Python's dict(iterable, **keywords).
func makeDict(in *interp, a *arguments) (Value, error) {
	d := &Dict{}
	switch from := a.or(0, nil).(type) {
	case nil:
	case *Dict:
		if err := in.build(int64(from.Len()) * 2 * elementBytes); err != nil {
			return nil, err
		}
		d = from.copy()
	default:
		next, err := in.iterate(from)
		if err != nil {
			return nil, err
		}
		for {
			item, ok, err := next()
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			pair, err := in.unpack(item, 2)
			if err != nil {
				return nil, err
			}
			if err := in.build(2 * elementBytes); err != nil {
				return nil, err
			}
			if err := in.setItem(d, pair[0], pair[1]); err != nil {
				return nil, err
			}
		}
	}
	if a.keywords != nil {
		for k, v := range a.keywords.All {
			if err := in.setItem(d, k, v); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

func makeNamespace(in *interp, a *arguments) (Value, error) {
	d, err := makeDict(in, a)
	if err != nil {
		return nil, err
	}
	return &namespace{d.(*Dict)}, nil
}

func makeCycler(_ *interp, a *arguments) (Value, error) {
	if len(a.rest) == 0 {
		return nil, runtimeErrorf("RuntimeError", "at least one item has to be provided")
	}
	return &cycler{items: a.rest}, nil
}

func cyclerMethods() map[string]*native {
	return merge(map[string]*native{
		"next": fn("", func(_ *interp, a *arguments) (Value, error) {
			c := a.self.(*cycler)
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v, nil
		}),
		"reset": fn("", func(_ *interp, a *arguments) (Value, error) {
			a.self.(*cycler).pos = 0
			return None{}, nil
		}),
	})
}

func makeJoiner(_ *interp, a *arguments) (Value, error) {
	return &joiner{sep: a.or(0, Str(", "))}, nil
}

func raiseException(in *interp, a *arguments) (Value, error) {
	msg, err := in.str(a.v[0])
	if err != nil {
		return nil, err
	}
	return nil, &TemplateError{Message: msg}
}

func strftimeNow(in *interp, a *arguments) (Value, error) {
	format, ok := asString(a.v[0])
	if !ok {
		return nil, typeErrorf("strftime() argument 1 must be str, not %s", a.v[0].typeName())
	}
	if err := in.build(int64(len(format)) * 32); err != nil {
		return nil, err
	}
	return Str(strftime(in.now, format)), nil
}

// unsupported stands for a part of jinja2 that no prompt should need: what is random, or lays out text for people. A
// template that only mentions it works; using it is an error rather than a wrong prompt.
func unsupported(what string) *native {
	return fn("/ * **", func(*interp, *arguments) (Value, error) {
		return nil, runtimeErrorf("NotImplementedError", "%s is not supported", what)
	})
}
