package chat

// loopContext is the loop variable of a for statement. It reads one item ahead only when asked to.
type loopContext struct {
	in       *interp
	iterable Value
	next     iterator
	size     int64 // -1 until known
	index0   int64
	depth0   int64

	before, current Value
	after           Value // the item read ahead, or nil
	ended           bool  // there is no item after the current one

	changedBy tuple // the arguments of the last changed(), nil before
	recurse   func(Value, int64) (string, error)
}

func (*loopContext) typeName() string { return "LoopContext" }

// forStatement runs a loop; a recursive one calls itself through the loop variable.
func (in *interp) forStatement(s *forStmt, f *frame, out *output) (control, error) {
	iterable, err := in.eval(s.iter, f)
	if err != nil {
		return toEnd, err
	}
	if !s.recursive {
		return in.loop(s, iterable, 0, nil, f, out)
	}
	var recurse func(Value, int64) (string, error)
	recurse = func(v Value, depth int64) (string, error) {
		if err := in.enter(); err != nil {
			return "", err
		}
		defer in.leave()
		var text output
		_, err := in.loop(s, v, depth, recurse, f, &text)
		return text.String(), err
	}
	text, err := recurse(iterable, 0)
	if err != nil {
		return toEnd, err
	}
	return toEnd, in.write(out, text)
}

// loop goes through the iterable. What it returns is how the else part ended, whose break is that of the loop around.
func (in *interp) loop(
	s *forStmt, iterable Value, depth int64, recurse func(Value, int64) (string, error), f *frame, out *output,
) (control, error) {
	iterable, err := in.filtered(s, iterable, f)
	if err != nil {
		return toEnd, err
	}
	next, err := in.iterate(iterable)
	if err != nil {
		return toEnd, err
	}
	inner := &frame{vars: make([]Value, s.bodyScope.size), parent: f}
	if s.extended {
		l := &loopContext{in: in, iterable: iterable, next: next, size: -1, index0: -1, depth0: depth, recurse: recurse}
		next = l.advance
		inner.vars[s.loop] = l
	}
	completed := false
	for {
		item, ok, err := next()
		if err != nil {
			return toEnd, err
		}
		if !ok {
			break
		}
		if err := in.step(1); err != nil {
			return toEnd, err
		}
		if err := in.assign(s.target, item, inner); err != nil {
			return toEnd, err
		}
		in.reset(s, inner)
		c, err := in.body(s.body, inner, out)
		if err != nil {
			return toEnd, err
		}
		if c == atBreak {
			break
		}
		completed = completed || c == toEnd
	}
	// As in Python the else part also runs when every round was left by break or continue.
	if completed || s.other == nil {
		return toEnd, nil
	}
	return in.body(s.other, in.enterScope(s.otherScope, f), out)
}

// reset gives the variables of a loop's body, other than the target, their values at the start of a round.
func (in *interp) reset(s *forStmt, f *frame) {
	for _, at := range s.bodyScope.unset {
		f.vars[at] = nil
	}
	in.load(s.bodyScope, f)
}

// filtered is the iterable of a loop with an if: an iterator over the items that pass.
func (in *interp) filtered(s *forStmt, iterable Value, f *frame) (Value, error) {
	if s.test == nil {
		return iterable, nil
	}
	next, err := in.iterate(iterable)
	if err != nil {
		return nil, err
	}
	inner := in.enterScope(s.testScope, f)
	pass := func() (Value, bool, error) {
		for {
			item, ok, err := next()
			if err != nil || !ok {
				return nil, false, err
			}
			if err := in.assign(s.testTarget, item, inner); err != nil {
				return nil, false, err
			}
			v, err := in.eval(s.test, inner)
			if err != nil {
				return nil, false, err
			}
			if truth(v) {
				return in.repack(s.testTarget, item, inner), true, nil
			}
		}
	}
	return &generator{typ: "generator", next: pass}, nil
}

// repack is the item that a filtered loop passes on: where the target is a tuple, a tuple made of its variables,
// since an iterator that was taken apart is used up.
func (in *interp) repack(target expr, item Value, f *frame) Value {
	t, ok := target.(*tupleExpr)
	if !ok {
		return item
	}
	out := make(tuple, len(t.items))
	for i, x := range t.items {
		switch x := x.(type) {
		case *nameExpr:
			out[i] = *f.lookup(x.ref)
		default:
			out[i] = in.repack(x, None{}, f)
		}
	}
	return out
}

// advance is the iterator of the loop itself.
func (l *loopContext) advance() (Value, bool, error) {
	item, ok, err := l.peek()
	if err != nil || !ok {
		return nil, false, err
	}
	l.after = nil
	l.index0++
	l.before, l.current = l.current, item
	return item, true, nil
}

// peek is the next item without going to it.
func (l *loopContext) peek() (Value, bool, error) {
	if l.after == nil && !l.ended {
		item, ok, err := l.next()
		if err != nil {
			return nil, false, err
		}
		if ok {
			l.after = item
		}
		l.ended = !ok
	}
	return l.after, l.after != nil, nil
}

// length counts the items; those of an iterator must all be read for that.
func (l *loopContext) length() (int64, error) {
	if l.size >= 0 {
		return l.size, nil
	}
	n, err := l.in.length(l.iterable)
	if err == nil {
		l.size = n
		return n, nil
	}
	rest, err := l.in.drain(l.next)
	if err != nil {
		return 0, err
	}
	l.size = int64(len(rest)) + l.index0 + 1
	if l.after != nil {
		l.size++
	}
	l.next = sliceIterator(rest)
	return l.size, nil
}

// attribute is an attribute of the loop variable; ok is false where there is none.
func (l *loopContext) attribute(name string) (v Value, ok bool, err error) {
	switch name {
	case "index":
		return Int(l.index0 + 1), true, nil
	case "index0":
		return Int(l.index0), true, nil
	case "first":
		return Bool(l.index0 == 0), true, nil
	case "last":
		_, more, err := l.peek()
		return Bool(!more), true, err
	case "depth":
		return Int(l.depth0 + 1), true, nil
	case "depth0":
		return Int(l.depth0), true, nil
	case "length":
		n, err := l.length()
		return Int(n), true, err
	case "revindex":
		n, err := l.length()
		return Int(n - l.index0), true, err
	case "revindex0":
		n, err := l.length()
		return Int(n - l.index0 - 1), true, err
	case "previtem":
		if l.index0 == 0 {
			return undefined{hint: "there is no previous item"}, true, nil
		}
		return l.before, true, nil
	case "nextitem":
		item, more, err := l.peek()
		if !more {
			item = undefined{hint: "there is no next item"}
		}
		return item, true, err
	case "cycle":
		return &function{native: loopCycle, self: l}, true, nil
	case "changed":
		return &function{native: loopChanged, self: l}, true, nil
	}
	return nil, false, nil
}

var (
	loopCycle = &native{name: "cycle", params: []string{"*"}, run: func(_ *interp, a *arguments) (Value, error) {
		if len(a.rest) == 0 {
			return nil, typeErrorf("no items for cycling given")
		}
		return a.rest[a.self.(*loopContext).index0%int64(len(a.rest))], nil
	}}
	loopChanged = &native{name: "changed", params: []string{"*"}, run: func(in *interp, a *arguments) (Value, error) {
		l := a.self.(*loopContext)
		if l.changedBy != nil {
			same, err := in.equal(l.changedBy, tuple(a.rest))
			if err != nil || same {
				return Bool(false), err
			}
		}
		l.changedBy = append(tuple{}, a.rest...)
		return Bool(true), nil
	}}
)
