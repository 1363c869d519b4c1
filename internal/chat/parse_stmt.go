package chat

// statement parses one tag whose name is the current token.
func (p *parser) statement() ([]stmt, error) {
	t := p.cur()
	if t.kind != tokName {
		return nil, p.errorf(t.line, "tag name expected")
	}
	parse := p.statementParser(t.text)
	if parse == nil {
		return nil, p.unknownTag(t.text, t.line)
	}
	p.tags = append(p.tags, t.text)
	defer func() { p.tags = p.tags[:len(p.tags)-1] }()
	p.advance()
	return parse(at(t.line))
}

// statementParser is the method that parses the tag, from the token after its name, or nil for an unknown tag.
func (p *parser) statementParser(tag string) func(at) ([]stmt, error) {
	switch tag {
	case "for":
		return p.parseFor
	case "if":
		return p.parseIf
	case "set":
		return p.parseSet
	case "macro":
		return p.parseMacro
	case "call":
		return p.parseCallBlock
	case "filter":
		return p.parseFilterBlock
	case "with":
		return p.parseWith
	case "generation":
		return p.parseGeneration
	case "print":
		return p.parsePrint
	case "block":
		return p.parseBlock
	case "autoescape":
		return p.parseAutoescape
	case "break":
		return func(a at) ([]stmt, error) { return []stmt{&breakStmt{a}}, nil }
	case "continue":
		return func(a at) ([]stmt, error) { return []stmt{&continueStmt{a}}, nil }
	case "extends", "include", "import", "from":
		return func(a at) ([]stmt, error) { return p.parseLoad(a, tag) }
	}
	return nil
}

func (p *parser) parseFor(a at) ([]stmt, error) {
	s := &forStmt{at: a}
	var err error
	if s.target, err = p.target(targetOptions{end: "in"}); err != nil {
		return nil, err
	}
	if err = p.expectName("in"); err != nil {
		return nil, err
	}
	if s.iter, err = p.tuple(tupleOptions{end: "recursive"}); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		if s.test, err = p.expression(); err != nil {
			return nil, err
		}
	}
	s.recursive = p.skipName("recursive")
	if s.body, err = p.inner("endfor", "else"); err != nil {
		return nil, err
	}
	if p.advance().text == "else" {
		if s.other, err = p.innerTo("endfor"); err != nil {
			return nil, err
		}
	}
	return []stmt{s}, nil
}

func (p *parser) parseIf(a at) ([]stmt, error) {
	s := &ifStmt{at: a}
	for {
		test, err := p.tuple(tupleOptions{})
		if err != nil {
			return nil, err
		}
		body, err := p.inner("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		s.branches = append(s.branches, branch{test, body})
		switch p.advance().text {
		case "elif":
			continue
		case "else":
			if s.other, err = p.innerTo("endif"); err != nil {
				return nil, err
			}
		}
		return []stmt{s}, nil
	}
}

func (p *parser) parseSet(a at) ([]stmt, error) {
	target, err := p.target(targetOptions{namespace: true})
	if err != nil {
		return nil, err
	}
	if p.skipOp("=") {
		value, err := p.tuple(tupleOptions{condExpr: true})
		if err != nil {
			return nil, err
		}
		return []stmt{&setStmt{a, target, value}}, nil
	}
	filter, err := p.filters(nil)
	if err != nil {
		return nil, err
	}
	body, err := p.innerTo("endset")
	if err != nil {
		return nil, err
	}
	return []stmt{&setBlockStmt{at: a, target: target, filter: filter, body: body}}, nil
}

func (p *parser) parseWith(a at) ([]stmt, error) {
	s := &withStmt{at: a}
	for p.cur().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		target, err := p.target(targetOptions{})
		if err != nil {
			return nil, err
		}
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		s.targets = append(s.targets, target)
		s.values = append(s.values, value)
	}
	var err error
	s.body, err = p.innerTo("endwith")
	return []stmt{s}, err
}

// signature parses the parameters of a macro or a call block.
func (p *parser) signature(m *macroDef) error {
	if err := p.expectOp("("); err != nil {
		return err
	}
	for !p.cur().is(")") {
		if len(m.params) > 0 {
			if err := p.expectOp(","); err != nil {
				return err
			}
		}
		name, err := p.targetName()
		if err != nil {
			return err
		}
		if p.skipOp("=") {
			value, err := p.expression()
			if err != nil {
				return err
			}
			m.defaults = append(m.defaults, value)
		} else if len(m.defaults) > 0 {
			return p.errorf(p.cur().line, "non-default argument follows default argument")
		}
		m.params = append(m.params, name)
	}
	return p.expectOp(")")
}

func (p *parser) parseMacro(a at) ([]stmt, error) {
	name, err := p.targetName()
	if err != nil {
		return nil, err
	}
	m := &macroDef{at: a, name: name.name}
	if err := p.signature(m); err != nil {
		return nil, err
	}
	m.body, err = p.innerTo("endmacro")
	return []stmt{&macroStmt{at: a, name: name.name, macro: m}}, err
}

func (p *parser) parseCallBlock(a at) ([]stmt, error) {
	m := &macroDef{at: a}
	if p.cur().is("(") {
		if err := p.signature(m); err != nil {
			return nil, err
		}
	}
	x, err := p.expression()
	if err != nil {
		return nil, err
	}
	call, ok := x.(*callExpr)
	if !ok {
		return nil, p.errorf(int(a), "expected call")
	}
	m.body, err = p.innerTo("endcall")
	return []stmt{&callBlockStmt{a, call, m}}, err
}

func (p *parser) parseGeneration(a at) ([]stmt, error) {
	body, err := p.innerTo("endgeneration")
	return []stmt{&generationStmt{a, &macroDef{at: a, body: body}}}, err
}

func (p *parser) parseFilterBlock(a at) ([]stmt, error) {
	x, err := p.filter(nil)
	if err != nil {
		return nil, err
	}
	if x, err = p.filters(x); err != nil {
		return nil, err
	}
	body, err := p.innerTo("endfilter")
	return []stmt{&filterBlockStmt{at: a, filter: x, body: body}}, err
}

func (p *parser) parsePrint(a at) ([]stmt, error) {
	var out []stmt
	for p.cur().kind != tokBlockEnd {
		if len(out) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		out = append(out, &printStmt{a, x})
	}
	return out, nil
}

func (p *parser) parseBlock(a at) ([]stmt, error) {
	name, err := p.expectKind(tokName)
	if err != nil {
		return nil, err
	}
	s := &blockStmt{at: a, name: name.text, scoped: p.skipName("scoped"), required: p.skipName("required")}
	if p.cur().is("-") {
		return nil, p.errorf(p.cur().line, "Block names in Jinja have to be valid Python identifiers and may not"+
			" contain hyphens, use an underscore instead.")
	}
	s.body, err = p.innerTo("endblock")
	if err != nil {
		return nil, err
	}
	p.skipName(name.text)
	return []stmt{s}, nil
}

func (p *parser) parseAutoescape(a at) ([]stmt, error) {
	option, err := p.expression()
	if err != nil {
		return nil, err
	}
	body, err := p.innerTo("endautoescape")
	return []stmt{&scopeStmt{at: a, option: option, body: body}}, err
}

// parseLoad parses the tags that would load another template. They fail when they are rendered, as in Python, where
// the environment has no loader.
func (p *parser) parseLoad(a at, tag string) ([]stmt, error) {
	if _, err := p.expression(); err != nil {
		return nil, err
	}
	s := &loadStmt{at: a, tag: tag}
	switch tag {
	case "include":
		if p.cur().isName("ignore") && p.look().isName("missing") {
			p.advance()
			p.advance()
		}
	case "import":
		if err := p.expectName("as"); err != nil {
			return nil, err
		}
		name, err := p.targetName()
		if err != nil {
			return nil, err
		}
		s.names = append(s.names, name)
	case "from":
		if err := p.importedNames(s); err != nil {
			return nil, err
		}
	}
	if tag != "extends" {
		p.importContext()
	}
	return []stmt{s}, nil
}

// importContext skips `with context` and `without context`.
func (p *parser) importContext() bool {
	if (p.cur().isName("with") || p.cur().isName("without")) && p.look().isName("context") {
		p.advance()
		p.advance()
		return true
	}
	return false
}

func (p *parser) importedNames(s *loadStmt) error {
	if err := p.expectName("import"); err != nil {
		return err
	}
	for first := true; first || p.skipOp(","); first = false {
		if p.importContext() {
			return nil
		}
		name, err := p.targetName()
		if err != nil {
			return err
		}
		if p.skipName("as") {
			if name, err = p.targetName(); err != nil {
				return err
			}
		}
		s.names = append(s.names, name)
	}
	return nil
}
