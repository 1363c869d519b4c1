package chat

// builtinTests are the tests after `is`.
func builtinTests() map[string]*native {
	kind := func(ok func(v Value) bool) *native {
		return fn("value", func(_ *interp, a *arguments) (Value, error) { return Bool(ok(a.v[0])), nil })
	}
	operator := func(op string) *native {
		return fn("/ a b", func(in *interp, a *arguments) (Value, error) {
			ok, err := in.compare(op, a.v[0], a.v[1])
			return Bool(ok), err
		})
	}
	tests := map[string]*native{
		"defined":   kind(func(v Value) bool { return !isUndefined(v) }),
		"undefined": kind(isUndefined),
		"none":      kind(func(v Value) bool { return v == None{} }),
		"boolean":   kind(func(v Value) bool { _, ok := v.(Bool); return ok }),
		"true":      kind(func(v Value) bool { return v == Bool(true) }),
		"false":     kind(func(v Value) bool { return v == Bool(false) }),
		"float":     kind(func(v Value) bool { _, ok := v.(Float); return ok }),
		"number":    kind(isNumber),
		"integer":   kind(isInteger),
		"string":    kind(func(v Value) bool { _, ok := asString(v); return ok }),
		"mapping":   kind(func(v Value) bool { _, ok := v.(*Dict); return ok }),
		"escaped":   kind(func(v Value) bool { _, ok := v.(markup); return ok }),
		"callable":  kind(isCallable),
		"sequence":  kind(isIndexable),
		"iterable": fn("value", func(in *interp, a *arguments) (Value, error) {
			_, err := in.iterate(a.v[0])
			return Bool(err == nil), nil
		}),
		"odd":         remainderTest(2, 1),
		"even":        remainderTest(2, 0),
		"divisibleby": fn("value num", divisibleBy),
		"lower":       caseTest(isLower),
		"upper":       caseTest(isUpper),
		"sameas": fn("value other", func(in *interp, a *arguments) (Value, error) {
			s, _ := asString(a.v[0])
			return Bool(identical(a.v[0], a.v[1]) && a.v[0].typeName() == a.v[1].typeName()), in.scan(len(s))
		}),
		"in": fn("value seq", func(in *interp, a *arguments) (Value, error) {
			ok, err := in.contains(a.v[1], a.v[0])
			return Bool(ok), err
		}),
		"filter": fn("value", func(in *interp, a *arguments) (Value, error) {
			return hasName(in, in.env.filters, a.v[0])
		}),
		"test": fn("value", func(in *interp, a *arguments) (Value, error) {
			return hasName(in, in.env.tests, a.v[0])
		}),
	}
	for op, names := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"}, ">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
		"<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
	} {
		for _, name := range names {
			tests[name] = operator(op)
		}
	}
	return merge(tests)
}

func isUndefined(v Value) bool {
	_, ok := v.(undefined)
	return ok
}

func isInteger(v Value) bool {
	switch v.(type) {
	case Int, bigInt:
		return true
	}
	return false
}

func isCallable(v Value) bool {
	switch v.(type) {
	case *function, *macroValue, *joiner, *loopContext, undefined:
		return true
	}
	return false
}

// isIndexable tells whether v has a length and can be indexed.
func isIndexable(v Value) bool {
	switch v.(type) {
	case Str, markup, bytesValue, *List, tuple, *group, *Dict, rangeValue, undefined:
		return true
	}
	return false
}

func remainderTest(n, want int64) *native {
	return fn("value", func(in *interp, a *arguments) (Value, error) {
		return remainderIs(in, a.v[0], Int(n), want)
	})
}

func divisibleBy(in *interp, a *arguments) (Value, error) { return remainderIs(in, a.v[0], a.v[1], 0) }

func remainderIs(in *interp, v, n Value, want int64) (Value, error) {
	rest, err := in.binary("%", v, n)
	if err != nil {
		return nil, err
	}
	same, err := in.equal(rest, Int(want))
	return Bool(same), err
}

func caseTest(ok func(string) bool) *native {
	return fn("value", func(in *interp, a *arguments) (Value, error) {
		s, err := in.str(a.v[0])
		if err != nil {
			return nil, err
		}
		return Bool(ok(s)), in.scan(len(s))
	})
}

func hasName(in *interp, table map[string]*native, v Value) (Value, error) {
	if _, err := in.dictKey(v); err != nil {
		return nil, err
	}
	name, ok := asString(v)
	return Bool(ok && table[name] != nil), nil
}
