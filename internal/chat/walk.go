package chat

// walkExpr calls visit for x and, where that returns true, for the expressions in x. A nil x is skipped.
func walkExpr(x expr, visit func(expr) bool) {
	if x == nil || !visit(x) {
		return
	}
	all := func(xs []expr) {
		for _, x := range xs {
			walkExpr(x, visit)
		}
	}
	switch x := x.(type) {
	case *nsRef:
		walkExpr(x.ns, visit)
	case *tupleExpr:
		all(x.items)
	case *listExpr:
		all(x.items)
	case *dictExpr:
		all(x.keys)
		all(x.values)
	case *condExpr:
		all([]expr{x.test, x.then, x.other})
	case *logicExpr:
		all([]expr{x.left, x.right})
	case *notExpr:
		walkExpr(x.x, visit)
	case *compareExpr:
		walkExpr(x.first, visit)
		for _, c := range x.rest {
			walkExpr(c.x, visit)
		}
	case *binaryExpr:
		all([]expr{x.left, x.right})
	case *unaryExpr:
		walkExpr(x.x, visit)
	case *concatExpr:
		all(x.parts)
	case *attrExpr:
		walkExpr(x.x, visit)
	case *itemExpr:
		all([]expr{x.x, x.index})
	case *sliceExpr:
		all([]expr{x.start, x.stop, x.step})
	case *callExpr:
		walkExpr(x.fn, visit)
		walkArgs(x.args, visit)
	case *filterExpr:
		walkExpr(x.x, visit)
		walkArgs(x.args, visit)
	case *testExpr:
		walkExpr(x.x, visit)
		walkArgs(x.args, visit)
	}
}

func walkArgs(c callArgs, visit func(expr) bool) {
	for _, x := range c.positional {
		walkExpr(x, visit)
	}
	for _, k := range c.keywords {
		walkExpr(k.value, visit)
	}
	walkExpr(c.star, visit)
	walkExpr(c.doubleStar, visit)
}

// A part is one piece of a statement, in the order of jinja2's nodes: an expression that is read, one that is
// assigned to, or a statement of a body.
type part struct {
	read   expr
	target expr
	param  bool // the target is a parameter
	stmt   stmt
}

// parts lists the pieces of s, without going into statements of its bodies.
func parts(s stmt) []part {
	switch s := s.(type) {
	case *printStmt:
		return []part{{read: s.x}}
	case *forStmt:
		ps := []part{{target: s.target}, {read: s.iter}}
		ps = append(ps, bodyParts(s.body)...)
		ps = append(ps, bodyParts(s.other)...)
		return append(ps, part{read: s.test})
	case *ifStmt:
		var ps []part
		for _, b := range s.branches {
			ps = append(ps, part{read: b.test})
			ps = append(ps, bodyParts(b.body)...)
		}
		return append(ps, bodyParts(s.other)...)
	case *setStmt:
		return []part{{target: s.target}, {read: s.value}}
	case *setBlockStmt:
		return append([]part{{target: s.target}, {read: s.filter}}, bodyParts(s.body)...)
	case *macroStmt:
		return macroParts(s.macro)
	case *callBlockStmt:
		return append([]part{{read: s.call}}, macroParts(s.macro)...)
	case *generationStmt:
		return macroParts(s.macro)
	case *filterBlockStmt:
		return append(bodyParts(s.body), part{read: s.filter})
	case *withStmt:
		var ps []part
		for i, t := range s.targets {
			ps = append(ps, part{target: t, param: true}, part{read: s.values[i]})
		}
		return append(ps, bodyParts(s.body)...)
	case *scopeStmt:
		return append([]part{{read: s.option}}, bodyParts(s.body)...)
	case *blockStmt:
		return bodyParts(s.body)
	}
	return nil
}

func bodyParts(body []stmt) []part {
	ps := make([]part, len(body))
	for i, s := range body {
		ps[i].stmt = s
	}
	return ps
}

func macroParts(m *macroDef) []part {
	var ps []part
	for _, p := range m.params {
		ps = append(ps, part{target: p, param: true})
	}
	for _, d := range m.defaults {
		ps = append(ps, part{read: d})
	}
	return append(ps, bodyParts(m.body)...)
}

// walkStmts calls visit for each statement in body, at any depth, and where that returns true for what is in it.
func walkStmts(body []stmt, visit func(stmt) bool) {
	for _, s := range body {
		if !visit(s) {
			continue
		}
		for _, p := range parts(s) {
			if p.stmt != nil {
				walkStmts([]stmt{p.stmt}, visit)
			}
		}
	}
}

// reads tells whether body reads the variable name anywhere before storing it, as jinja2 decides it to see whether a
// loop needs its loop variable and a macro its caller. Blocks are not looked into.
func reads(body []stmt, name string) bool {
	found, stored := false, false
	readIn := func(x expr) {
		walkExpr(x, func(x expr) bool {
			if n, ok := x.(*nameExpr); ok && n.name == name && !stored {
				found = true
			}
			return !found
		})
	}
	storeIn := func(x expr) {
		walkExpr(x, func(x expr) bool {
			switch x := x.(type) {
			case *nameExpr:
				stored = stored || x.name == name
			case *nsRef:
				return false
			}
			return true
		})
	}
	walkStmts(body, func(s stmt) bool {
		if _, ok := s.(*blockStmt); ok || found {
			return false
		}
		for _, p := range parts(s) {
			if p.read != nil {
				readIn(p.read)
			}
			if p.target != nil {
				storeIn(p.target)
			}
		}
		return !found
	})
	return found
}
