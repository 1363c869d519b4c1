package chat

import "fmt"

// SyntaxError says why a template does not parse. Type is the Python exception jinja2 raises for the same source.
type SyntaxError struct {
	Type    string
	Message string
	Line    int // 1-based line of the template
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("chat template line %d: %s: %s", e.Line, e.Type, e.Message)
}

// RuntimeError says why a template cannot be rendered with the variables it was given. Type is the Python exception
// that jinja2 raises in the same place: TypeError, UndefinedError, SecurityError and so on.
type RuntimeError struct {
	Type    string
	Message string
	Line    int // 1-based line of the template, 0 when not known
}

func (e *RuntimeError) Error() string {
	return fmt.Sprintf("chat template line %d: %s: %s", e.Line, e.Type, e.Message)
}

// TemplateError is what a template says by calling raise_exception: it refuses the conversation. Message is exactly
// the template's text, made for the person who sent the conversation.
type TemplateError struct {
	Message string
	Line    int // 1-based line of the template
}

func (e *TemplateError) Error() string {
	return fmt.Sprintf("chat template line %d: refused: %s", e.Line, e.Message)
}

// LimitError says that a template was stopped because it passed one of its [Limits].
type LimitError struct {
	What  string // what was counted, for example "evaluation steps"
	Limit int64
	Line  int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("chat template line %d: more than %d %s", e.Line, e.Limit, e.What)
}

func runtimeErrorf(typ, format string, args ...any) error {
	return &RuntimeError{Type: typ, Message: fmt.Sprintf(format, args...)}
}

func typeErrorf(format string, args ...any) error {
	return runtimeErrorf("TypeError", format, args...)
}

func valueErrorf(format string, args ...any) error {
	return runtimeErrorf("ValueError", format, args...)
}

// atLine adds the line to an error that does not have one yet.
func atLine(err error, line int) error {
	switch e := err.(type) {
	case *RuntimeError:
		if e.Line == 0 {
			e.Line = line
		}
	case *TemplateError:
		if e.Line == 0 {
			e.Line = line
		}
	case *LimitError:
		if e.Line == 0 {
			e.Line = line
		}
	}
	return err
}

// errorType is the Python exception type of err, or "".
func errorType(err error) string {
	if e, ok := err.(*RuntimeError); ok {
		return e.Type
	}
	return ""
}
