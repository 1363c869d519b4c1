package chat

import (
	"fmt"
	"strings"
)

const (
	// maxSourceBytes bounds the source of a template. The longest published ones have about 30 KB.
	maxSourceBytes = 1 << 20
	// maxParseDepth bounds the nesting of tags and brackets. Python's recursion limit stops jinja2 at about 70 brackets.
	maxParseDepth = 200
	// maxOperators bounds the operators, calls and filters of one outermost expression, and so, together with
	// maxParseDepth, the height of the tree that the evaluator walks.
	maxOperators = 5000
)

// parser builds the tree by recursive descent, in the order and with the precedences of jinja2.
type parser struct {
	tokens    []token
	next      int
	depth     int
	operators int
	endTokens [][]string // what the enclosing tags wait for, for messages
	tags      []string   // the tags that are open, for messages
}

func parse(src string) ([]stmt, error) {
	if len(src) > maxSourceBytes {
		return nil, &LimitError{What: "bytes of template source", Limit: maxSourceBytes}
	}
	tokens, err := tokenize(src)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	return p.body(nil)
}

func (p *parser) cur() token { return p.tokens[p.next] }

// look is the token after the current one.
func (p *parser) look() token { return p.tokens[min(p.next+1, len(p.tokens)-1)] }

// advance returns the current token and moves to the next; the end of the template is never passed.
func (p *parser) advance() token {
	t := p.cur()
	if t.kind != tokEOF {
		p.next++
	}
	return t
}

func (p *parser) skipName(name string) bool {
	if !p.cur().isName(name) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) skipOp(op string) bool {
	if !p.cur().is(op) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) errorf(line int, format string, args ...any) error {
	return &SyntaxError{Type: "TemplateSyntaxError", Message: fmt.Sprintf(format, args...), Line: line}
}

// expected is the error for a current token that is not what was wanted.
func (p *parser) expected(want string) error {
	t := p.cur()
	if t.kind == tokEOF {
		return p.errorf(t.line, "unexpected end of template, expected '%s'.", want)
	}
	return p.errorf(t.line, "expected token '%s', got '%s'", want, t.describe())
}

func (p *parser) expectOp(op string) error {
	if !p.skipOp(op) {
		return p.expected(op)
	}
	return nil
}

func (p *parser) expectName(name string) error {
	if !p.skipName(name) {
		return p.expected(name)
	}
	return nil
}

func (p *parser) expectKind(kind tokenKind) (token, error) {
	if p.cur().kind == kind {
		return p.advance(), nil
	}
	want := token{kind: kind}.describe()
	if kind == tokName {
		want = "name"
	}
	return token{}, p.expected(want)
}

// enter counts one level of nesting; each successful enter is matched by a leave.
func (p *parser) enter() error {
	if p.depth >= maxParseDepth {
		return &LimitError{What: "levels of nesting in the template", Limit: maxParseDepth, Line: p.cur().line}
	}
	p.depth++
	return nil
}

func (p *parser) leave() { p.depth-- }

// operator counts one operator of the outermost expression.
func (p *parser) operator() error {
	p.operators++
	if p.operators > maxOperators {
		return &LimitError{What: "operators in one expression of the template", Limit: maxOperators, Line: p.cur().line}
	}
	return nil
}

// body parses statements up to one of the end tags, whose name is left as the current token, or to the end of the
// template when there are none.
func (p *parser) body(end []string) ([]stmt, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if end != nil {
		p.endTokens = append(p.endTokens, end)
		defer func() { p.endTokens = p.endTokens[:len(p.endTokens)-1] }()
	}
	var out []stmt
	for {
		t := p.advance()
		p.operators = 0
		switch t.kind {
		case tokEOF:
			if end != nil {
				return nil, p.unknownTag("", t.line)
			}
			return out, nil
		case tokData:
			out = append(out, &dataStmt{at(t.line), t.text})
		case tokVariableBegin:
			line := p.cur().line
			x, err := p.tuple(tupleOptions{condExpr: true})
			if err != nil {
				return nil, err
			}
			if _, err := p.expectKind(tokVariableEnd); err != nil {
				return nil, err
			}
			out = append(out, &printStmt{at(line), x})
		case tokBlockBegin:
			if p.atEndTag(end) {
				return out, nil
			}
			s, err := p.statement()
			if err != nil {
				return nil, err
			}
			out = append(out, s...)
			if _, err := p.expectKind(tokBlockEnd); err != nil {
				return nil, err
			}
		default:
			return nil, p.errorf(t.line, "unexpected '%s'", t.describe())
		}
	}
}

func (p *parser) atEndTag(end []string) bool {
	for _, name := range end {
		if p.cur().isName(name) {
			return true
		}
	}
	return false
}

// inner parses the body of a tag: the rest of its opening and the statements up to one of the end tags.
func (p *parser) inner(end ...string) ([]stmt, error) {
	p.skipOp(":")
	if _, err := p.expectKind(tokBlockEnd); err != nil {
		return nil, err
	}
	return p.body(end)
}

// innerTo is inner with a single end tag, which is taken too.
func (p *parser) innerTo(end string) ([]stmt, error) {
	body, err := p.inner(end)
	if err == nil {
		p.advance()
	}
	return body, err
}

// unknownTag explains a tag that does not belong, or with an empty name the end of the template inside a tag.
func (p *parser) unknownTag(name string, line int) error {
	var msg strings.Builder
	if name == "" {
		msg.WriteString("Unexpected end of template.")
	} else {
		fmt.Fprintf(&msg, "Encountered unknown tag '%s'.", name)
	}
	if n := len(p.endTokens); n > 0 {
		looking := "'" + strings.Join(p.endTokens[n-1], "' or '") + "'"
		if name != "" && p.isEndTag(name) {
			fmt.Fprintf(&msg, " You probably made a nesting mistake. Jinja is expecting this tag,"+
				" but currently looking for %s.", looking)
		} else {
			fmt.Fprintf(&msg, " Jinja was looking for the following tags: %s.", looking)
		}
	}
	if n := len(p.tags); n > 0 {
		fmt.Fprintf(&msg, " The innermost block that needs to be closed is '%s'.", p.tags[n-1])
	}
	return p.errorf(line, "%s", msg.String())
}

func (p *parser) isEndTag(name string) bool {
	for _, names := range p.endTokens {
		for _, n := range names {
			if n == name {
				return true
			}
		}
	}
	return false
}
