package chat

import "strings"

// postfix parses subscripts and calls.
func (p *parser) postfix(x expr) (expr, error) {
	for {
		var err error
		t := p.cur()
		switch {
		case t.is("."):
			x, err = p.attribute(x)
		case t.is("["):
			x, err = p.subscript(x)
		case t.is("("):
			x, err = p.call(x)
		default:
			return x, nil
		}
		if err != nil {
			return nil, err
		}
		if err := p.operator(); err != nil {
			return nil, err
		}
	}
}

// filterSuffixes parses filters, tests and calls of their results.
func (p *parser) filterSuffixes(x expr) (expr, error) {
	for {
		var err error
		t := p.cur()
		switch {
		case t.is("|"):
			x, err = p.filters(x)
		case t.isName("is"):
			x, err = p.test(x)
		case t.is("("):
			x, err = p.call(x)
		default:
			return x, nil
		}
		if err != nil {
			return nil, err
		}
		if err := p.operator(); err != nil {
			return nil, err
		}
	}
}

func (p *parser) attribute(x expr) (expr, error) {
	a := at(p.advance().line)
	t := p.advance()
	switch t.kind {
	case tokName:
		return &attrExpr{a, x, t.text}, nil
	case tokInteger:
		i, err := p.integer(t)
		return &itemExpr{a, x, &constExpr{at(t.line), i}}, err
	}
	return nil, p.errorf(t.line, "expected name or number")
}

func (p *parser) subscript(x expr) (expr, error) {
	a := at(p.advance().line)
	var parts []expr
	for !p.cur().is("]") {
		if len(parts) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		part, err := p.subscripted()
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	p.advance()
	if len(parts) == 1 {
		return &itemExpr{a, x, parts[0]}, nil
	}
	for _, part := range parts {
		if s, ok := part.(*sliceExpr); ok {
			return nil, p.errorf(s.pos(), "a slice cannot be part of a tuple of indices")
		}
	}
	return &itemExpr{a, x, &tupleExpr{a, parts}}, nil
}

// subscripted parses an index or a slice.
func (p *parser) subscripted() (expr, error) {
	s := &sliceExpr{at: at(p.cur().line)}
	if !p.cur().is(":") {
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		if !p.cur().is(":") {
			return x, nil
		}
		s.start = x
	}
	p.advance()
	var err error
	if s.stop, err = p.slicePart(); err != nil {
		return nil, err
	}
	if p.skipOp(":") {
		if s.step, err = p.slicePart(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// slicePart is one part of a slice, or nil when it is left out.
func (p *parser) slicePart() (expr, error) {
	if t := p.cur(); t.is(":") || t.is("]") || t.is(",") {
		return nil, nil
	}
	return p.expression()
}

func (p *parser) call(x expr) (expr, error) {
	c := &callExpr{at: at(p.cur().line), fn: x}
	var err error
	c.args, err = p.callArgs()
	return c, err
}

func (p *parser) callArgs() (callArgs, error) {
	var c callArgs
	line := p.cur().line
	if err := p.expectOp("("); err != nil {
		return c, err
	}
	for first := true; !p.cur().is(")"); first = false {
		if !first {
			if err := p.expectOp(","); err != nil {
				return c, err
			}
			if p.cur().is(")") {
				break
			}
		}
		ok, err := p.callArg(&c)
		if err != nil {
			return c, err
		}
		if !ok {
			return c, p.errorf(line, "invalid syntax for function call expression")
		}
	}
	return c, p.expectOp(")")
}

// callArg parses one argument. It reports false for one that may not stand after those before it.
func (p *parser) callArg(c *callArgs) (bool, error) {
	var err error
	switch {
	case p.skipOp("*"):
		if c.star != nil || c.doubleStar != nil {
			return false, nil
		}
		c.star, err = p.expression()
	case p.skipOp("**"):
		if c.doubleStar != nil {
			return false, nil
		}
		c.doubleStar, err = p.expression()
	case p.cur().kind == tokName && p.look().is("="):
		if c.doubleStar != nil {
			return false, nil
		}
		name := p.advance()
		p.advance()
		for _, k := range c.keywords {
			if k.name == name.text {
				return false, &SyntaxError{Type: "SyntaxError", Message: "keyword argument repeated: " + name.text, Line: name.line}
			}
		}
		var value expr
		value, err = p.expression()
		c.keywords = append(c.keywords, keyword{name.text, value})
	default:
		if c.star != nil || c.doubleStar != nil || len(c.keywords) > 0 {
			return false, nil
		}
		var value expr
		value, err = p.expression()
		c.positional = append(c.positional, value)
	}
	return true, err
}

// dottedName parses the name of a filter or test.
func (p *parser) dottedName() (string, error) {
	t, err := p.expectKind(tokName)
	if err != nil {
		return "", err
	}
	if !p.cur().is(".") {
		return t.text, nil
	}
	var b strings.Builder
	b.WriteString(t.text)
	for p.skipOp(".") {
		if t, err = p.expectKind(tokName); err != nil {
			return "", err
		}
		b.WriteString("." + t.text)
	}
	return b.String(), nil
}

// filters parses any number of filters, each after a bar.
func (p *parser) filters(x expr) (expr, error) {
	for p.skipOp("|") {
		if err := p.operator(); err != nil {
			return nil, err
		}
		var err error
		if x, err = p.filter(x); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// filter parses the name and the arguments of one filter of x.
func (p *parser) filter(x expr) (expr, error) {
	f := &filterExpr{at: at(p.cur().line), x: x}
	var err error
	if f.name, err = p.dottedName(); err != nil {
		return nil, err
	}
	if p.cur().is("(") {
		f.args, err = p.callArgs()
	}
	return f, err
}

func (p *parser) test(x expr) (expr, error) {
	a := at(p.advance().line)
	negated := p.skipName("not")
	t := &testExpr{at: a, x: x}
	var err error
	if t.name, err = p.dottedName(); err != nil {
		return nil, err
	}
	switch {
	case p.cur().is("("):
		t.args, err = p.callArgs()
	case p.atTestArgument():
		if p.cur().isName("is") {
			return nil, p.errorf(p.cur().line, "You cannot chain multiple tests with is")
		}
		var arg expr
		if arg, err = p.primary(false); err != nil {
			return nil, err
		}
		arg, err = p.postfix(arg)
		t.args.positional = []expr{arg}
	}
	if err != nil {
		return nil, err
	}
	if negated {
		return &notExpr{a, t}, nil
	}
	return t, nil
}

// atTestArgument tells whether an argument without brackets follows the name of a test.
func (p *parser) atTestArgument() bool {
	t := p.cur()
	switch t.kind {
	case tokName:
		return t.text != "else" && t.text != "or" && t.text != "and"
	case tokString, tokInteger, tokFloat:
		return true
	}
	return t.is("[") || t.is("{")
}
