package chat

import (
	"strings"
	"time"
)

// interp is the state of one render. It is used by one goroutine and thrown away.
type interp struct {
	budget
	env  *environment
	vars *Dict            // what the caller gave
	top  map[string]Value // what the template stored in its outermost scope
	now  time.Time

	printing []any // the containers that are being printed, by what container says
}

// frame holds the variables of one entered scope. A nil variable is undefined.
type frame struct {
	vars   []Value
	parent *frame
}

// lookup is the frame up steps out from f.
func (f *frame) lookup(r ref) *Value {
	for range r.up {
		f = f.parent
	}
	return &f.vars[r.slot]
}

// enterScope makes the frame of a scope entered from parent.
func (in *interp) enterScope(sc *scope, parent *frame) *frame {
	f := &frame{vars: make([]Value, sc.size), parent: parent}
	in.load(sc, f)
	return f
}

// load gives the variables of a frame their first values.
func (in *interp) load(sc *scope, f *frame) {
	for _, l := range sc.loads {
		if l.kind == loadAlias {
			f.vars[l.slot] = *f.lookup(l.from)
		} else {
			f.vars[l.slot] = in.resolve(l.name)
		}
	}
}

// resolve is the template's variable of that name, or nil.
func (in *interp) resolve(name string) Value {
	if v, ok := in.top[name]; ok {
		return v
	}
	if v, ok := in.vars.Get(name); ok {
		return v
	}
	if v, ok := in.env.globals[name]; ok {
		return v
	}
	return nil
}

// output collects text. The result of the render and every captured block are outputs.
type output struct {
	strings.Builder
	limit int64 // of the result; 0 for captured text, which the budget for built bytes bounds
}

func (in *interp) write(out *output, s string) error {
	if out.limit > 0 && int64(out.Len()+len(s)) > out.limit {
		return &LimitError{What: "bytes of output", Limit: out.limit}
	}
	if out.limit == 0 {
		if err := in.build(int64(len(s))); err != nil {
			return err
		}
	} else if err := in.scan(len(s)); err != nil {
		return err
	}
	out.WriteString(s)
	return nil
}
