package chat

import (
	"context"
	"time"
)

// Template is a parsed chat template.
type Template struct {
	env  *environment
	body []stmt
	root *scope
}

// Parse reads a template. What is wrong with the source is a *[SyntaxError], or a *[LimitError] when the source is too
// long or too deeply nested.
func Parse(src string) (*Template, error) {
	body, err := parse(src)
	if err != nil {
		return nil, err
	}
	env := newEnvironment()
	root, err := resolve(env, body)
	if err != nil {
		return nil, err
	}
	return &Template{env: env, body: body, root: root}, nil
}

// Options are what a render needs beside its variables.
type Options struct {
	Now    time.Time // what strftime_now tells, in its own time zone
	Limits Limits
}

// Render writes the template with the given variables. It fails with a *[TemplateError] when the template refuses them,
// a *[RuntimeError] where Python would raise another exception, a *[LimitError], or the cause of a cancelled ctx.
func (t *Template) Render(ctx context.Context, vars *Dict, o Options) (string, error) {
	if vars == nil {
		vars = &Dict{}
	}
	in := &interp{
		budget: newBudget(ctx, o.Limits),
		env:    t.env,
		vars:   vars,
		top:    map[string]Value{},
		now:    o.Now,
	}
	out := &output{limit: in.limits.OutputBytes}
	if _, err := in.body(t.body, in.enterScope(t.root, nil), out); err != nil {
		return "", err
	}
	return out.String(), nil
}
