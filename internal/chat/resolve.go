package chat

import "fmt"

// resolver gives every name of a tree its slot, every scope its layout, and refuses what jinja2's compiler refuses.
type resolver struct {
	env    *environment
	blocks map[string]bool
}

// place is where in the tree a statement stands.
type place struct {
	sym      *symbols
	topLevel bool // the outermost scope, ifs included
	soft     bool // inside an if: an unknown filter is only an error when it is reached
	loop     bool // break and continue have a loop to act on
}

// inner is a place in a new scope inside p.
func (p place) inner() place { return place{sym: newSymbols(p.sym, p.sym.work), loop: p.loop} }

func (p place) inIf() place {
	p.soft = true
	return p
}

func compileErrorf(line int, format string, args ...any) error {
	return &SyntaxError{Type: "TemplateAssertionError", Message: fmt.Sprintf(format, args...), Line: line}
}

// resolve prepares a parsed template and returns the layout of its outermost scope.
func resolve(env *environment, body []stmt) (*scope, error) {
	r := &resolver{env: env, blocks: map[string]bool{}}
	p := place{sym: newSymbols(nil, new(int64)), topLevel: true}
	p.sym.body(body)
	if err := r.body(body, p); err != nil {
		return nil, err
	}
	return p.sym.layout(), nil
}

func (r *resolver) body(body []stmt, p place) error {
	for _, s := range body {
		if err := r.statement(s, p); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) statement(s stmt, p place) error {
	if *p.sym.work > maxScopeWork {
		return &LimitError{What: "names in the branches of the template", Limit: maxScopeWork, Line: s.pos()}
	}
	switch s := s.(type) {
	case *printStmt:
		return r.expr(s.x, p)
	case *ifStmt:
		return r.ifStatement(s, p.inIf())
	case *forStmt:
		return r.forStatement(s, p)
	case *setStmt:
		r.target(s.target, p)
		return r.expr(s.value, p)
	case *setBlockStmt:
		return r.setBlock(s, p)
	case *macroStmt:
		s.ref, _ = p.sym.find(s.name)
		s.ref.export = p.topLevel
		return r.macro(s.macro, p)
	case *callBlockStmt:
		if err := r.macro(s.macro, p); err != nil {
			return err
		}
		return r.expr(s.call, p)
	case *generationStmt:
		return r.macro(s.macro, p)
	case *filterBlockStmt:
		in := p.inner()
		in.sym.body(s.body)
		in.sym.read(s.filter)
		if err := r.scoped(s.body, in, &s.scope); err != nil {
			return err
		}
		return r.expr(s.filter, in)
	case *withStmt:
		return r.with(s, p)
	case *scopeStmt:
		if err := r.expr(s.option, p); err != nil {
			return err
		}
		in := p.inner()
		in.sym.body(s.body)
		return r.scoped(s.body, in, &s.scope)
	case *blockStmt:
		return r.block(s, p)
	case *breakStmt, *continueStmt:
		if !p.loop {
			return &SyntaxError{Type: "SyntaxError", Message: "break or continue outside of a loop", Line: s.pos()}
		}
	}
	return nil
}

// scoped resolves body in a place whose names are collected already, and stores its layout.
func (r *resolver) scoped(body []stmt, p place, to **scope) error {
	if err := r.body(body, p); err != nil {
		return err
	}
	*to = p.sym.layout()
	return nil
}

func (r *resolver) ifStatement(s *ifStmt, p place) error {
	for _, b := range s.branches {
		if err := r.expr(b.test, p); err != nil {
			return err
		}
		if err := r.body(b.body, p); err != nil {
			return err
		}
	}
	return r.body(s.other, p)
}

func (r *resolver) forStatement(s *forStmt, p place) error {
	if line := storesLoop(s); line > 0 {
		return compileErrorf(line, "Can't assign to named loop variable in for-loop target")
	}
	if err := r.expr(s.iter, p); err != nil {
		return err
	}
	in := p.inner()
	in.loop = true
	s.extended = s.recursive || reads(s.body, "loop")
	s.loop = -1
	if s.extended {
		s.loop = in.sym.parameter("loop")
	}
	in.sym.assign(s.target, true)
	in.sym.body(s.body)
	r.target(s.target, in)
	if err := r.scoped(s.body, in, &s.bodyScope); err != nil {
		return err
	}
	if s.other != nil {
		in := p.inner()
		in.loop = p.loop && !s.recursive
		in.sym.body(s.other)
		if err := r.scoped(s.other, in, &s.otherScope); err != nil {
			return err
		}
	}
	if s.test == nil {
		return nil
	}
	in = p.inner()
	s.testTarget = cloneTarget(s.target)
	in.sym.assign(s.testTarget, true)
	in.sym.read(s.test)
	r.target(s.testTarget, in)
	if err := r.expr(s.test, in); err != nil {
		return err
	}
	s.testScope = in.sym.layout()
	return nil
}

// storesLoop is the line of a store to the name loop anywhere in s, or 0.
func storesLoop(s *forStmt) int {
	line := 0
	walkStmts([]stmt{s}, func(s stmt) bool {
		for _, p := range parts(s) {
			if p.param {
				continue
			}
			walkExpr(p.target, func(x expr) bool {
				if n, ok := x.(*nameExpr); ok && n.name == "loop" {
					line = n.pos()
				}
				_, isNS := x.(*nsRef)
				return !isNS
			})
		}
		return line == 0
	})
	return line
}

func cloneTarget(x expr) expr {
	switch x := x.(type) {
	case *tupleExpr:
		c := &tupleExpr{at: x.at}
		for _, item := range x.items {
			c.items = append(c.items, cloneTarget(item))
		}
		return c
	case *nameExpr:
		return &nameExpr{at: x.at, name: x.name}
	}
	return x
}

func (r *resolver) setBlock(s *setBlockStmt, p place) error {
	r.target(s.target, p)
	in := p.inner()
	in.sym.body(s.body)
	in.sym.read(s.filter)
	if err := r.scoped(s.body, in, &s.scope); err != nil {
		return err
	}
	if s.filter == nil {
		return nil
	}
	return r.expr(s.filter, in)
}

// macro resolves the body of a macro or call block. Only a body that mentions caller, kwargs or varargs gets them.
func (r *resolver) macro(m *macroDef, p place) error {
	in := p.inner()
	in.loop = false
	named := map[string]bool{}
	for i, param := range m.params {
		if named[param.name] {
			return &SyntaxError{Type: "SyntaxError", Message: "duplicate argument " + param.name, Line: param.pos()}
		}
		in.sym.parameter(param.name)
		named[param.name] = true
		if param.name == "caller" && i < len(m.params)-len(m.defaults) && reads(m.body, "caller") {
			return compileErrorf(m.pos(), `When defining macros or call blocks the named "caller" argument must be omitted`+
				" or be given a default.")
		}
	}
	extra := func(name string) slot {
		if named[name] || !reads(m.body, name) {
			return -1
		}
		return in.sym.parameter(name)
	}
	m.caller, m.kwargs, m.varargs = extra("caller"), extra("kwargs"), extra("varargs")
	for _, d := range m.defaults {
		in.sym.read(d)
	}
	in.sym.body(m.body)
	for _, param := range m.params {
		r.target(param, in)
	}
	for _, d := range m.defaults {
		if err := r.expr(d, in); err != nil {
			return err
		}
	}
	return r.scoped(m.body, in, &m.scope)
}

func (r *resolver) with(s *withStmt, p place) error {
	in := p.inner()
	for _, t := range s.targets {
		in.sym.assign(t, true)
	}
	in.sym.body(s.body)
	for i, t := range s.targets {
		r.target(t, in)
		if err := r.expr(s.values[i], p); err != nil {
			return err
		}
	}
	return r.scoped(s.body, in, &s.scope)
}

// block resolves a block, which sees the template's variables but not the scopes around it, unless it says scoped.
func (r *resolver) block(s *blockStmt, p place) error {
	if r.blocks[s.name] {
		return compileErrorf(s.pos(), "block '%s' defined twice", s.name)
	}
	r.blocks[s.name] = true
	in := place{sym: newSymbols(nil, p.sym.work)}
	if s.scoped {
		in = p.inner()
		in.loop = false
	}
	in.sym.body(s.body)
	return r.scoped(s.body, in, &s.scope)
}

// target gives the names of an assignment their slots.
func (r *resolver) target(x expr, p place) {
	walkExpr(x, func(x expr) bool {
		if n, ok := x.(*nameExpr); ok {
			n.ref, _ = p.sym.find(n.name)
			n.ref.export = p.topLevel
		}
		return true
	})
}

// expr gives the names of x their slots and checks its filters and tests.
func (r *resolver) expr(x expr, p place) error {
	var err error
	walkExpr(x, func(x expr) bool {
		if err != nil {
			return false
		}
		switch x := x.(type) {
		case *nameExpr:
			x.ref, _ = p.sym.find(x.name)
		case *filterExpr:
			if r.env.filters[x.name] == nil && !p.soft {
				err = compileErrorf(x.pos(), "No filter named '%s'.", x.name)
			}
		case *testExpr:
			if r.env.tests[x.name] == nil && !p.soft {
				err = compileErrorf(x.pos(), "No test named '%s'.", x.name)
			}
		case *condExpr:
			for _, part := range []expr{x.test, x.then, x.other} {
				if err == nil {
					err = r.expr(part, p.inIf())
				}
			}
			return false
		}
		return err == nil
	})
	return err
}
