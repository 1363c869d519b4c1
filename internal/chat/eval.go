package chat

import "strings"

// elementBytes is what an element of a list or dict is charged as, beside what it refers to.
const elementBytes = 32

// eval is the value of x.
func (in *interp) eval(x expr, f *frame) (Value, error) {
	if err := in.push(); err != nil {
		return nil, err
	}
	defer in.pop()
	switch x := x.(type) {
	case *constExpr:
		return x.value, nil
	case *nameExpr:
		if v := *f.lookup(x.ref); v != nil {
			return v, nil
		}
		return undefined{name: Str(x.name)}, nil
	case *attrExpr:
		obj, err := in.eval(x.x, f)
		if err != nil {
			return nil, err
		}
		return in.attribute(obj, x.name)
	case *itemExpr:
		return in.evalItem(x, f)
	case *callExpr:
		return in.evalCall(x, nil, f)
	case *filterExpr:
		v, err := in.eval(x.x, f)
		if err != nil {
			return nil, err
		}
		return in.applyFilter(x, v, f)
	case *testExpr:
		return in.evalTest(x, f)
	case *logicExpr:
		return in.evalLogic(x, f)
	case *notExpr:
		v, err := in.eval(x.x, f)
		return Bool(err == nil && !truth(v)), err
	case *condExpr:
		return in.evalCond(x, f)
	case *compareExpr:
		return in.evalCompare(x, f)
	case *binaryExpr:
		left, err := in.eval(x.left, f)
		if err != nil {
			return nil, err
		}
		right, err := in.eval(x.right, f)
		if err != nil {
			return nil, err
		}
		return in.binary(x.op, left, right)
	case *unaryExpr:
		v, err := in.eval(x.x, f)
		if err != nil {
			return nil, err
		}
		return in.unary(x.op, v)
	case *concatExpr:
		return in.evalConcat(x, f)
	}
	return in.evalDisplay(x, f)
}

// evalDisplay is the value of a list, tuple or dict written out.
func (in *interp) evalDisplay(x expr, f *frame) (Value, error) {
	switch x := x.(type) {
	case *listExpr:
		items, err := in.evalAll(x.items, f)
		return &List{items}, err
	case *tupleExpr:
		items, err := in.evalAll(x.items, f)
		return tuple(items), err
	case *dictExpr:
		d := &Dict{}
		if err := in.build(int64(len(x.keys)) * 2 * elementBytes); err != nil {
			return nil, err
		}
		for i := range x.keys {
			k, err := in.eval(x.keys[i], f)
			if err != nil {
				return nil, err
			}
			v, err := in.eval(x.values[i], f)
			if err != nil {
				return nil, err
			}
			if err := in.setItem(d, k, v); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	return nil, runtimeErrorf("TemplateRuntimeError", "expression has no value")
}

func (in *interp) evalAll(xs []expr, f *frame) ([]Value, error) {
	if err := in.build(int64(len(xs)) * elementBytes); err != nil {
		return nil, err
	}
	out := make([]Value, len(xs))
	for i, x := range xs {
		var err error
		if out[i], err = in.eval(x, f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (in *interp) evalLogic(x *logicExpr, f *frame) (Value, error) {
	left, err := in.eval(x.left, f)
	if err != nil || truth(left) == x.or {
		return left, err
	}
	return in.eval(x.right, f)
}

func (in *interp) evalCond(x *condExpr, f *frame) (Value, error) {
	test, err := in.eval(x.test, f)
	switch {
	case err != nil:
		return nil, err
	case truth(test):
		return in.eval(x.then, f)
	case x.other != nil:
		return in.eval(x.other, f)
	}
	return undefined{hint: "the inline if-expression on " + lineText(x.pos()) +
		" evaluated to false and no else section was defined."}, nil
}

func (in *interp) evalCompare(x *compareExpr, f *frame) (Value, error) {
	left, err := in.eval(x.first, f)
	if err != nil {
		return nil, err
	}
	for _, c := range x.rest {
		right, err := in.eval(c.x, f)
		if err != nil {
			return nil, err
		}
		ok, err := in.compare(c.op, left, right)
		if err != nil || !ok {
			return Bool(false), err
		}
		left = right
	}
	return Bool(true), nil
}

func (in *interp) evalConcat(x *concatExpr, f *frame) (Value, error) {
	texts := make([]string, len(x.parts))
	for i, p := range x.parts {
		v, err := in.eval(p, f)
		if err != nil {
			return nil, err
		}
		if texts[i], err = in.str(v); err != nil {
			return nil, err
		}
	}
	s, err := in.joinStrings(texts, "")
	return Str(s), err
}

// joinStrings is strings.Join within the budget.
func (in *interp) joinStrings(texts []string, sep string) (string, error) {
	n := int64(len(sep)) * int64(max(len(texts)-1, 0))
	for _, t := range texts {
		n += int64(len(t))
	}
	if err := in.build(n); err != nil {
		return "", err
	}
	return strings.Join(texts, sep), nil
}

func (in *interp) evalItem(x *itemExpr, f *frame) (Value, error) {
	obj, err := in.eval(x.x, f)
	if err != nil {
		return nil, err
	}
	s, ok := x.index.(*sliceExpr)
	if !ok {
		index, err := in.eval(x.index, f)
		if err != nil {
			return nil, err
		}
		return in.item(obj, index)
	}
	var bounds [3]Value
	for i, part := range []expr{s.start, s.stop, s.step} {
		bounds[i] = None{}
		if part == nil {
			continue
		}
		if bounds[i], err = in.eval(part, f); err != nil {
			return nil, err
		}
	}
	return in.slice(obj, bounds)
}

func (in *interp) applyFilter(x *filterExpr, v Value, f *frame) (Value, error) {
	c, err := in.evalArgs(x.args, f, v)
	if err != nil {
		return nil, err
	}
	return in.callFilter(x.name, c)
}

// callFilter calls a filter with the filtered value as the first argument.
func (in *interp) callFilter(name string, c *callValues) (Value, error) {
	n := in.env.filters[name]
	if n == nil {
		return nil, runtimeErrorf("TemplateRuntimeError", "No filter named '%s' found.", name)
	}
	return in.callNative(n, nil, c)
}

func (in *interp) evalTest(x *testExpr, f *frame) (Value, error) {
	v, err := in.eval(x.x, f)
	if err != nil {
		return nil, err
	}
	c, err := in.evalArgs(x.args, f, v)
	if err != nil {
		return nil, err
	}
	return in.callTest(x.name, c)
}

func (in *interp) callTest(name string, c *callValues) (Value, error) {
	n := in.env.tests[name]
	if n == nil {
		return nil, runtimeErrorf("TemplateRuntimeError", "No test named '%s' found.", name)
	}
	return in.callNative(n, nil, c)
}
