package chat

import (
	"math/big"
	"strconv"
	"strings"
)

type targetOptions struct {
	end       string // a name that ends the target
	namespace bool   // ns.attr is allowed
}

// target parses what may be assigned to: a name, a tuple of names, or with namespace also ns.attr.
func (p *parser) target(o targetOptions) (expr, error) {
	x, err := p.tuple(tupleOptions{simple: true, end: o.end, namespace: o.namespace})
	if err != nil {
		return nil, err
	}
	return x, p.checkTarget(x)
}

func (p *parser) checkTarget(x expr) error {
	kind := ""
	switch x := x.(type) {
	case *nameExpr, *nsRef:
		return nil
	case *tupleExpr:
		for _, item := range x.items {
			if p.checkTarget(item) != nil {
				return p.errorf(x.pos(), "can't assign to 'tuple'")
			}
		}
		return nil
	case *constExpr:
		kind = "const"
	case *listExpr:
		kind = "list"
	case *dictExpr:
		kind = "dict"
	default:
		kind = "expression"
	}
	return p.errorf(x.pos(), "can't assign to '%s'", kind)
}

// targetName parses a single name to be assigned.
func (p *parser) targetName() (*nameExpr, error) {
	t, err := p.expectKind(tokName)
	if err != nil {
		return nil, err
	}
	switch t.text {
	case "true", "false", "none", "True", "False", "None":
		return nil, p.errorf(t.line, "can't assign to 'name'")
	}
	return &nameExpr{at: at(t.line), name: t.text}, nil
}

type tupleOptions struct {
	simple    bool   // only names and literals
	condExpr  bool   // inline if is allowed
	parens    bool   // in brackets: may be empty
	end       string // a name that ends the tuple
	namespace bool
}

// tuple parses expressions with commas between them, or a single one without.
func (p *parser) tuple(o tupleOptions) (expr, error) {
	line := p.cur().line
	var items []expr
	isTuple := false
	for {
		if len(items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		if p.atTupleEnd(o.end) {
			break
		}
		x, err := p.tupleItem(o)
		if err != nil {
			return nil, err
		}
		items = append(items, x)
		if !p.cur().is(",") {
			break
		}
		isTuple = true
		line = p.cur().line
	}
	if !isTuple {
		if len(items) > 0 {
			return items[0], nil
		}
		if !o.parens {
			return nil, p.errorf(p.cur().line, "Expected an expression, got '%s'", p.cur().describe())
		}
	}
	return &tupleExpr{at(line), items}, nil
}

func (p *parser) atTupleEnd(end string) bool {
	t := p.cur()
	return t.kind == tokVariableEnd || t.kind == tokBlockEnd || t.is(")") || end != "" && t.isName(end)
}

func (p *parser) tupleItem(o tupleOptions) (expr, error) {
	switch {
	case o.simple:
		return p.primary(o.namespace)
	case o.condExpr || o.parens:
		return p.expression()
	}
	return p.or()
}

// expression parses any expression, inline if included.
func (p *parser) expression() (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	line := p.cur().line
	x, err := p.or()
	for err == nil && p.skipName("if") {
		if err := p.operator(); err != nil {
			return nil, err
		}
		c := &condExpr{at: at(line), then: x}
		if c.test, err = p.or(); err != nil {
			return nil, err
		}
		if p.skipName("else") {
			if c.other, err = p.expression(); err != nil {
				return nil, err
			}
		}
		x = c
		line = p.cur().line
	}
	return x, err
}

func (p *parser) or() (expr, error) { return p.logic("or", p.and) }

func (p *parser) and() (expr, error) { return p.logic("and", p.not) }

func (p *parser) logic(op string, operand func() (expr, error)) (expr, error) {
	line := p.cur().line
	left, err := operand()
	for err == nil && p.skipName(op) {
		if err := p.operator(); err != nil {
			return nil, err
		}
		var right expr
		if right, err = operand(); err != nil {
			return nil, err
		}
		left = &logicExpr{at(line), op == "or", left, right}
		line = p.cur().line
	}
	return left, err
}

func (p *parser) not() (expr, error) {
	if !p.cur().isName("not") {
		return p.compare()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	line := p.advance().line
	x, err := p.not()
	return &notExpr{at(line), x}, err
}

func (p *parser) compare() (expr, error) {
	line := p.cur().line
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := &compareExpr{first: first}
	for {
		op := p.comparator()
		if op == "" {
			break
		}
		x, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.rest = append(c.rest, comparison{op, x})
		line = p.cur().line
	}
	if len(c.rest) == 0 {
		return first, nil
	}
	c.at = at(line)
	return c, nil
}

// comparator takes a comparison operator and returns it, or "".
func (p *parser) comparator() string {
	t := p.cur()
	if t.kind == tokOperator {
		switch t.text {
		case "==", "!=", "<", "<=", ">", ">=":
			p.advance()
			return t.text
		}
		return ""
	}
	if p.skipName("in") {
		return "in"
	}
	if t.isName("not") && p.look().isName("in") {
		p.advance()
		p.advance()
		return "notin"
	}
	return ""
}

func (p *parser) sum() (expr, error) { return p.binary(p.concat, "+", "-") }

func (p *parser) product() (expr, error) { return p.binary(p.power, "*", "/", "//", "%") }

func (p *parser) power() (expr, error) { return p.binary(p.unary, "**") }

// binary parses operators of one precedence, grouping to the left (as jinja2 does even for powers).
func (p *parser) binary(operand func() (expr, error), ops ...string) (expr, error) {
	line := p.cur().line
	left, err := operand()
	if err != nil {
		return nil, err
	}
	for {
		op := ""
		for _, o := range ops {
			if p.cur().is(o) {
				op = o
			}
		}
		if op == "" {
			return left, nil
		}
		p.advance()
		if err := p.operator(); err != nil {
			return nil, err
		}
		right, err := operand()
		if err != nil {
			return nil, err
		}
		left = &binaryExpr{at(line), op, left, right}
		line = p.cur().line
	}
}

func (p *parser) concat() (expr, error) {
	line := p.cur().line
	x, err := p.product()
	if err != nil || !p.cur().is("~") {
		return x, err
	}
	parts := []expr{x}
	for p.skipOp("~") {
		if x, err = p.product(); err != nil {
			return nil, err
		}
		parts = append(parts, x)
	}
	return &concatExpr{at(line), parts}, nil
}

func (p *parser) unary() (expr, error) {
	x, err := p.signed()
	if err != nil {
		return nil, err
	}
	return p.filterSuffixes(x)
}

// signed parses a primary expression with its signs and subscripts, without filters.
func (p *parser) signed() (expr, error) {
	t := p.cur()
	if !t.is("-") && !t.is("+") {
		x, err := p.primary(false)
		if err != nil {
			return nil, err
		}
		return p.postfix(x)
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.advance()
	x, err := p.signed()
	if err != nil {
		return nil, err
	}
	return p.postfix(&unaryExpr{at(t.line), t.text, x})
}

func (p *parser) primary(namespace bool) (expr, error) {
	t := p.cur()
	a := at(t.line)
	switch t.kind {
	case tokName:
		p.advance()
		return p.nameOrConst(t, namespace)
	case tokString:
		p.advance()
		text := t.text
		if p.cur().kind == tokString {
			var b strings.Builder
			b.WriteString(text)
			for p.cur().kind == tokString {
				b.WriteString(p.advance().text)
			}
			text = b.String()
		}
		return &constExpr{a, Str(text)}, nil
	case tokInteger:
		p.advance()
		v, err := p.integer(t)
		return &constExpr{a, v}, err
	case tokFloat:
		p.advance()
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil && f == 0 {
			return nil, p.errorf(t.line, "invalid number '%s'", t.text)
		}
		return &constExpr{a, Float(f)}, nil
	}
	switch {
	case t.is("("):
		return p.parenthesized()
	case t.is("["):
		return p.list()
	case t.is("{"):
		return p.dict()
	}
	return nil, p.errorf(t.line, "unexpected '%s'", t.describe())
}

func (p *parser) nameOrConst(t token, namespace bool) (expr, error) {
	a := at(t.line)
	switch t.text {
	case "true", "True":
		return &constExpr{a, Bool(true)}, nil
	case "false", "False":
		return &constExpr{a, Bool(false)}, nil
	case "none", "None":
		return &constExpr{a, None{}}, nil
	}
	name := &nameExpr{at: a, name: t.text}
	if namespace && p.skipOp(".") {
		attr, err := p.expectKind(tokName)
		return &nsRef{a, name, attr.text}, err
	}
	return name, nil
}

// integer is the value of an integer literal, which may have a base prefix.
func (p *parser) integer(t token) (Value, error) {
	base, digits := 10, t.text
	if len(digits) > 1 && digits[0] == '0' {
		switch digits[1] | 0x20 {
		case 'b':
			base = 2
		case 'o':
			base = 8
		case 'x':
			base = 16
		}
		if base != 10 {
			digits = digits[2:]
		}
	}
	if i, err := strconv.ParseInt(digits, base, 64); err == nil {
		return Int(i), nil
	}
	if base == 10 && len(digits) > maxIntDigits {
		return nil, p.errorf(t.line, "Exceeds the limit (%d digits) for integer string conversion: value has %d digits;"+
			" use sys.set_int_max_str_digits() to increase the limit", maxIntDigits, len(digits))
	}
	i, ok := new(big.Int).SetString(digits, base)
	if !ok || i.BitLen() > maxIntBits {
		return nil, p.errorf(t.line, "invalid integer of %d digits", len(digits))
	}
	return normalizeInt(i), nil
}

func (p *parser) parenthesized() (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.advance()
	x, err := p.tuple(tupleOptions{parens: true})
	if err != nil {
		return nil, err
	}
	return x, p.expectOp(")")
}

func (p *parser) list() (expr, error) {
	l := &listExpr{at: at(p.advance().line)}
	for !p.cur().is("]") {
		if len(l.items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		if p.cur().is("]") {
			break
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, x)
	}
	return l, p.expectOp("]")
}

func (p *parser) dict() (expr, error) {
	d := &dictExpr{at: at(p.advance().line)}
	for !p.cur().is("}") {
		if len(d.keys) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		if p.cur().is("}") {
			break
		}
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.expectOp(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys = append(d.keys, key)
		d.values = append(d.values, value)
	}
	return d, p.expectOp("}")
}
