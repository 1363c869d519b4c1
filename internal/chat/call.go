package chat

import (
	"slices"
	"strings"
)

// native is a function written in Go: a filter, a test, a builtin or a method.
type native struct {
	name string
	// params names the parameters in order. A name ending in ? may be left out; "*" takes the remaining positional
	// arguments and "**" the remaining keyword arguments.
	params []string
	// positional says that no parameter may be given by name, as in many functions that Python has in C.
	positional bool
	run        func(in *interp, a *arguments) (Value, error)
}

// callValues are the arguments of a call as they were written.
type callValues struct {
	args     []Value
	keywords *Dict // nil when there are none
}

// arguments are the arguments of a native function, by parameter; one that was left out is nil.
type arguments struct {
	self     Value
	v        []Value
	rest     []Value
	keywords *Dict
}

// or is argument i, or def where it was left out.
func (a *arguments) or(i int, def Value) Value {
	if i >= len(a.v) || a.v[i] == nil {
		return def
	}
	return a.v[i]
}

// fn makes a native function from its parameters with spaces between them. A leading "/" makes them positional only.
func fn(params string, run func(in *interp, a *arguments) (Value, error)) *native {
	n := &native{params: strings.Fields(params), run: run}
	if len(n.params) > 0 && n.params[0] == "/" {
		n.positional, n.params = true, n.params[1:]
	}
	return n
}

// evalArgs evaluates the arguments of a call; first come the values in front.
func (in *interp) evalArgs(a callArgs, f *frame, front ...Value) (*callValues, error) {
	c := &callValues{args: append(make([]Value, 0, len(front)+len(a.positional)), front...)}
	for _, x := range a.positional {
		v, err := in.eval(x, f)
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, v)
	}
	if len(a.keywords) > 0 {
		c.keywords = &Dict{}
	}
	for _, k := range a.keywords {
		v, err := in.eval(k.value, f)
		if err != nil {
			return nil, err
		}
		c.keywords.Set(k.name, v)
	}
	if err := in.starArgs(a, f, c); err != nil {
		return nil, err
	}
	return c, nil
}

// starArgs adds what *args and **kwargs give.
func (in *interp) starArgs(a callArgs, f *frame, c *callValues) error {
	if a.star != nil {
		v, err := in.eval(a.star, f)
		if err != nil {
			return err
		}
		items, err := in.collect(v)
		if err != nil {
			return err
		}
		c.args = append(c.args, items...)
	}
	if a.doubleStar == nil {
		return nil
	}
	v, err := in.eval(a.doubleStar, f)
	if err != nil {
		return err
	}
	d, ok := v.(*Dict)
	if !ok {
		return typeErrorf("argument after ** must be a mapping, not %s", v.typeName())
	}
	if c.keywords == nil {
		c.keywords = &Dict{}
	}
	if err := in.build(int64(d.Len()) * 2 * elementBytes); err != nil {
		return err
	}
	for k, v := range d.All {
		name, ok := asString(k)
		if !ok {
			return typeErrorf("keywords must be strings")
		}
		if _, dup := c.keywords.Get(name); dup {
			return typeErrorf("got multiple values for keyword argument '%s'", name)
		}
		c.keywords.Set(name, v)
	}
	return nil
}

func (in *interp) evalCall(x *callExpr, caller Value, f *frame) (Value, error) {
	fv, err := in.eval(x.fn, f)
	if err != nil {
		return nil, err
	}
	c, err := in.evalArgs(x.args, f)
	if err != nil {
		return nil, err
	}
	if caller != nil {
		if c.keywords == nil {
			c.keywords = &Dict{}
		}
		c.keywords.Set("caller", caller)
	}
	v, err := in.call(fv, c)
	if err != nil {
		return nil, atLine(err, x.pos())
	}
	return v, nil
}

func (in *interp) callBlock(s *callBlockStmt, f *frame, out *output) error {
	v, err := in.evalCall(s.call, &macroValue{s.macro, f}, f)
	if err != nil {
		return err
	}
	return in.printValue(v, out)
}

// call calls any value.
func (in *interp) call(fv Value, c *callValues) (Value, error) {
	switch fv := fv.(type) {
	case *function:
		return in.callNative(fv.native, fv.self, c)
	case *macroValue:
		text, err := in.callMacro(fv, c)
		return Str(text), err
	case *loopContext:
		if fv.recurse == nil {
			return nil, typeErrorf("The loop must have the 'recursive' marker to be called recursively.")
		}
		if len(c.args) != 1 || c.keywords != nil {
			return nil, typeErrorf("LoopContext.__call__() takes one argument (%d given)", len(c.args))
		}
		text, err := fv.recurse(c.args[0], fv.depth0+1)
		return Str(text), err
	case *joiner:
		if fv.used {
			return fv.sep, nil
		}
		fv.used = true
		return Str(""), nil
	case undefined:
		return nil, fv.error()
	}
	return nil, typeErrorf("'%s' object is not callable", fv.typeName())
}

func (in *interp) callNative(n *native, self Value, c *callValues) (Value, error) {
	a, err := n.bind(self, c)
	if err != nil {
		return nil, err
	}
	return n.run(in, a)
}

// bind gives each argument of a call to its parameter.
func (n *native) bind(self Value, c *callValues) (*arguments, error) {
	a := &arguments{self: self, v: make([]Value, 0, len(n.params))}
	args := c.args
	used := 0
	for _, p := range n.params {
		name := strings.TrimSuffix(p, "?")
		switch {
		case p == "*":
			a.rest, args = args, nil
			continue
		case p == "**":
			continue
		}
		var v Value
		byName, named := c.keyword(name)
		switch {
		case len(args) > 0:
			if named && !n.takesAll() {
				return nil, typeErrorf("got multiple values for argument '%s'", name)
			}
			v, args = args[0], args[1:]
		case named && !n.positional:
			v = byName
			used++
		case name == p:
			return nil, typeErrorf("missing required argument: '%s'", name)
		}
		a.v = append(a.v, v)
	}
	if len(args) > 0 {
		return nil, typeErrorf("takes at most %d arguments (%d given)", len(n.params), len(c.args))
	}
	if c.keywords != nil && used < c.keywords.Len() {
		if !n.takesAll() {
			return nil, typeErrorf("unexpected keyword argument")
		}
		a.keywords = n.remaining(c.keywords)
	}
	return a, nil
}

func (n *native) takesAll() bool { return slices.Contains(n.params, "**") }

// remaining are the keyword arguments that no parameter is named for.
func (n *native) remaining(keywords *Dict) *Dict {
	rest := &Dict{}
	for k, v := range keywords.All {
		name, _ := asString(k)
		if !n.positional && (slices.Contains(n.params, name) || slices.Contains(n.params, name+"?")) {
			continue
		}
		rest.Set(name, v)
	}
	return rest
}

func (c *callValues) keyword(name string) (Value, bool) {
	if c.keywords == nil {
		return nil, false
	}
	return c.keywords.Get(name)
}

// callMacro renders a macro's body and returns the text.
func (in *interp) callMacro(m *macroValue, c *callValues) (string, error) {
	if err := in.enter(); err != nil {
		return "", err
	}
	defer in.leave()
	f := in.enterScope(m.def.scope, m.frame)
	if err := in.bindMacro(m.def, c, f); err != nil {
		return "", err
	}
	firstDefault := len(m.def.params) - len(m.def.defaults)
	for i, p := range m.def.params {
		at := f.lookup(p.ref)
		switch {
		case *at != nil:
		case i < firstDefault:
			*at = undefined{hint: "parameter " + reprString(p.name) + " was not provided", name: Str(p.name)}
		default:
			v, err := in.eval(m.def.defaults[i-firstDefault], f)
			if err != nil {
				return "", err
			}
			*at = v
		}
	}
	var text output
	_, err := in.body(m.def.body, f, &text)
	return text.String(), err
}

// bindMacro puts the arguments of a call into the variables of the macro's frame.
func (in *interp) bindMacro(m *macroDef, c *callValues, f *frame) error {
	n := min(len(c.args), len(m.params))
	for i, p := range m.params[:n] {
		*f.lookup(p.ref) = c.args[i]
	}
	rest := &Dict{}
	if c.keywords != nil {
		rest = c.keywords.copy()
	}
	if err := in.build(int64(rest.Len()) * 2 * elementBytes); err != nil {
		return err
	}
	foundCaller := false
	for _, p := range m.params {
		foundCaller = foundCaller || p.name == "caller"
	}
	for _, p := range m.params[n:] {
		if v, ok := rest.take(p.name); ok {
			if err := in.scan(rest.Len() * elementBytes); err != nil { // what taking one of them out costs
				return err
			}
			*f.lookup(p.ref) = v
		}
	}
	if m.caller >= 0 && !foundCaller {
		caller, ok := rest.take("caller")
		if _, none := caller.(None); !ok || none {
			caller = undefined{hint: "No caller defined", name: Str("caller")}
		}
		f.vars[m.caller] = caller
	}
	switch {
	case m.kwargs >= 0:
		f.vars[m.kwargs] = rest
	case rest.Len() > 0:
		if _, ok := rest.Get("caller"); ok {
			return typeErrorf("macro %s was invoked with two values for the special caller argument."+
				" This is most likely a bug.", m.reprName())
		}
		return typeErrorf("macro %s takes no keyword argument %s", m.reprName(), shortRepr(rest.keys[0]))
	}
	switch {
	case m.varargs >= 0:
		f.vars[m.varargs] = tuple(c.args[n:])
	case len(c.args) > len(m.params):
		return typeErrorf("macro %s takes not more than %d argument(s)", m.reprName(), len(m.params))
	}
	return nil
}

func (m *macroDef) reprName() string {
	if m.name == "" {
		return "None"
	}
	return reprString(m.name)
}
