package chat

// control says how a body ended.
type control uint8

const (
	toEnd control = iota
	atBreak
	atContinue
)

// body runs statements in order.
func (in *interp) body(body []stmt, f *frame, out *output) (control, error) {
	for _, s := range body {
		c, err := in.exec(s, f, out)
		if err != nil {
			return toEnd, atLine(err, s.pos())
		}
		if c != toEnd {
			return c, nil
		}
	}
	return toEnd, nil
}

func (in *interp) exec(s stmt, f *frame, out *output) (control, error) {
	if err := in.push(); err != nil {
		return toEnd, err
	}
	defer in.pop()
	switch s := s.(type) {
	case *dataStmt:
		return toEnd, in.write(out, s.text)
	case *printStmt:
		return toEnd, in.print(s.x, f, out)
	case *ifStmt:
		return in.ifStatement(s, f, out)
	case *forStmt:
		return in.forStatement(s, f, out)
	case *setStmt:
		return toEnd, in.set(s, f)
	case *setBlockStmt:
		return in.setBlock(s, f)
	case *macroStmt:
		in.store(s.ref, s.name, &macroValue{s.macro, f}, f)
	case *callBlockStmt:
		return toEnd, in.callBlock(s, f, out)
	case *generationStmt:
		text, err := in.callMacro(&macroValue{s.macro, f}, &callValues{})
		if err != nil {
			return toEnd, err
		}
		return toEnd, in.write(out, text)
	case *filterBlockStmt:
		inner := in.enterScope(s.scope, f)
		var text output
		if c, err := in.body(s.body, inner, &text); err != nil || c != toEnd {
			return c, err
		}
		v, err := in.filterChain(s.filter, inner, Str(text.String()))
		if err != nil {
			return toEnd, err
		}
		return toEnd, in.printValue(v, out)
	case *withStmt:
		return in.with(s, f, out)
	case *scopeStmt:
		return in.autoescape(s, f, out)
	case *blockStmt:
		return toEnd, in.block(s, f, out)
	case *breakStmt:
		return atBreak, nil
	case *continueStmt:
		return atContinue, nil
	case *loadStmt:
		return toEnd, typeErrorf("no loader for this environment specified")
	}
	return toEnd, nil
}

func (in *interp) print(x expr, f *frame, out *output) error {
	v, err := in.eval(x, f)
	if err != nil {
		return err
	}
	return in.printValue(v, out)
}

func (in *interp) printValue(v Value, out *output) error {
	text, err := in.str(v)
	if err != nil {
		return err
	}
	return in.write(out, text)
}

func (in *interp) ifStatement(s *ifStmt, f *frame, out *output) (control, error) {
	for _, b := range s.branches {
		v, err := in.eval(b.test, f)
		if err != nil {
			return toEnd, atLine(err, b.test.pos())
		}
		if truth(v) {
			return in.body(b.body, f, out)
		}
	}
	return in.body(s.other, f, out)
}

func (in *interp) set(s *setStmt, f *frame) error {
	if err := in.checkNamespaces(s.target, f); err != nil {
		return err
	}
	v, err := in.eval(s.value, f)
	if err != nil {
		return err
	}
	return in.assign(s.target, v, f)
}

// checkNamespaces fails unless what an assignment sets attributes of are namespaces.
func (in *interp) checkNamespaces(target expr, f *frame) error {
	var err error
	walkExpr(target, func(x expr) bool {
		if ns, ok := x.(*nsRef); ok {
			if _, ok := (*f.lookup(ns.ns.ref)).(*namespace); !ok {
				err = runtimeErrorf("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
			}
			return false
		}
		return true
	})
	return err
}

// store sets a variable.
func (in *interp) store(r ref, name string, v Value, f *frame) {
	*f.lookup(r) = v
	if r.export {
		in.top[name] = v
	}
}

// assign stores v in a target, taking it apart where the target is a tuple.
func (in *interp) assign(target expr, v Value, f *frame) error {
	if err := in.step(1); err != nil {
		return err
	}
	switch t := target.(type) {
	case *nameExpr:
		in.store(t.ref, t.name, v, f)
		return nil
	case *nsRef:
		ns, ok := (*f.lookup(t.ns.ref)).(*namespace)
		if !ok {
			return runtimeErrorf("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
		}
		if err := in.build(elementBytes); err != nil {
			return err
		}
		ns.attrs.Set(t.attr, v)
		return nil
	case *tupleExpr:
		items, err := in.unpack(v, len(t.items))
		if err != nil {
			return err
		}
		for i, item := range t.items {
			if err := in.assign(item, items[i], f); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpack takes v apart into exactly n values.
func (in *interp) unpack(v Value, n int) ([]Value, error) {
	next, err := in.iterate(v)
	if err != nil {
		if errorType(err) == "TypeError" {
			return nil, typeErrorf("cannot unpack non-iterable %s object", v.typeName())
		}
		return nil, err
	}
	items := make([]Value, 0, n)
	for {
		item, ok, err := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if len(items) == n {
			return nil, valueErrorf("too many values to unpack (expected %d)", n)
		}
		items = append(items, item)
	}
	if len(items) < n {
		return nil, valueErrorf("not enough values to unpack (expected %d, got %d)", n, len(items))
	}
	return items, nil
}

func (in *interp) setBlock(s *setBlockStmt, f *frame) (control, error) {
	inner := in.enterScope(s.scope, f)
	var text output
	if c, err := in.body(s.body, inner, &text); err != nil || c != toEnd {
		return c, err
	}
	v := Value(Str(text.String()))
	if s.filter != nil {
		var err error
		if v, err = in.filterChain(s.filter, inner, v); err != nil {
			return toEnd, err
		}
	}
	return toEnd, in.assign(s.target, v, f)
}

// filterChain applies the filters of a block to its text.
func (in *interp) filterChain(x expr, f *frame, text Value) (Value, error) {
	fx, ok := x.(*filterExpr)
	if !ok {
		return in.eval(x, f)
	}
	v := text
	if fx.x != nil {
		var err error
		if v, err = in.filterChain(fx.x, f, text); err != nil {
			return nil, err
		}
	}
	return in.applyFilter(fx, v, f)
}

func (in *interp) with(s *withStmt, f *frame, out *output) (control, error) {
	inner := in.enterScope(s.scope, f)
	for i, t := range s.targets {
		v, err := in.eval(s.values[i], f)
		if err != nil {
			return toEnd, err
		}
		if err := in.assign(t, v, inner); err != nil {
			return toEnd, err
		}
	}
	return in.body(s.body, inner, out)
}

// autoescape renders the body of an autoescape tag that turns escaping off, as it is already. Turning it on is
// refused: nothing that a language model reads is HTML.
func (in *interp) autoescape(s *scopeStmt, f *frame, out *output) (control, error) {
	v, err := in.eval(s.option, f)
	if err != nil {
		return toEnd, err
	}
	if truth(v) {
		return toEnd, runtimeErrorf("TemplateRuntimeError", "autoescape is not supported")
	}
	return in.body(s.body, in.enterScope(s.scope, f), out)
}

func (in *interp) block(s *blockStmt, f *frame, out *output) error {
	if s.required {
		return runtimeErrorf("TemplateRuntimeError", "Required block '%s' not found", s.name)
	}
	if !s.scoped {
		f = nil
	}
	_, err := in.body(s.body, in.enterScope(s.scope, f), out)
	return err
}
