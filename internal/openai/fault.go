package openai

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Fault is what is wrong with a request: the client has to change it.
type Fault struct {
	Param   string // the field as a dotted path such as "messages.1.content"; "" when the whole body is meant
	Message string // what is wrong, with the value and the limit
	Body    bool   // the body could not be decoded, as opposed to a value that is not allowed
}

// Error returns the message.
func (f *Fault) Error() string { return f.Message }

// faultf reports that the field param has a value that is not allowed.
func faultf(param, format string, args ...any) *Fault {
	return &Fault{Param: param, Message: fmt.Sprintf(format, args...)}
}

// unsupported refuses a field that would change the meaning of the answer if it were ignored.
func unsupported(param string) *Fault {
	return faultf(param, "%s is not supported by this server", param)
}

// mismatch is returned by the decoders of this package for a value of the wrong type or range.
type mismatch struct {
	at   jsontext.Pointer // the value
	want string           // completes "stop must be …"
	got  string           // what was sent instead
}

func (m *mismatch) Error() string { return "must be " + m.want + ", got " + m.got }

// wanted reports that raw, the value that dec has just read, is not what was expected.
func wanted(want string, raw jsontext.Value, dec *jsontext.Decoder) error {
	return &mismatch{at: dec.StackPointer(), want: want, got: show(raw)}
}

// wantedNext is wanted for the value that dec stands before; a syntax error there takes precedence.
func wantedNext(want string, dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	return wanted(want, raw, dec)
}

// show quotes a value in a message: short scalars as they are, all else by its kind.
func show(raw jsontext.Value) string {
	switch k := raw.Kind(); k {
	case '{', '[':
		return kindName(k)
	default:
		if len(raw) > 64 {
			return kindName(k) + " of " + strconv.Itoa(len(raw)) + " bytes"
		}
		return string(raw)
	}
}

// bodyFault turns an error of the JSON decoder into a Fault. The field's path starts with prefix.
func bodyFault(prefix string, err error) *Fault {
	if serr, ok := errors.AsType[*json.SemanticError](err); ok {
		return semanticFault(prefix, serr)
	}
	if serr, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(serr.Err, io.ErrUnexpectedEOF) || errors.Is(serr.Err, io.EOF) {
			return &Fault{Body: true, Message: fmt.Sprintf("the body is not JSON: it ends too early, at byte %d", serr.ByteOffset)}
		}
		f := &Fault{Param: join(prefix, serr.JSONPointer), Body: true}
		f.Message = fmt.Sprintf("the body is not JSON: %v at byte %d", rootCause(serr), serr.ByteOffset)
		if f.Param != "" {
			f.Message += " (" + f.Param + ")"
		}
		return f
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Fault{Body: true, Message: "the body is empty; a JSON object is expected"}
	}
	return &Fault{Param: prefix, Body: true, Message: fmt.Sprintf("the body is not JSON: %v", err)}
}

// semanticFault words a value of the wrong type.
func semanticFault(prefix string, err *json.SemanticError) *Fault {
	param := join(prefix, err.JSONPointer)
	want, got := typeName(err.GoType), kindName(err.JSONKind)
	if len(err.JSONValue) > 0 {
		got = show(err.JSONValue)
	}
	if m, ok := errors.AsType[*mismatch](err.Err); ok {
		param, want, got = join(prefix, m.at), m.want, m.got
	}
	subject := param
	if subject == "" {
		subject = "the body"
	}
	return &Fault{Param: param, Body: true, Message: fmt.Sprintf("%s must be %s, got %s", subject, want, got)}
}

// rootCause strips the decoder's own description of the place, which the fault words itself.
func rootCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// maxPath is the length of a path after which it is cut: a body may nest 10,000 deep.
const maxPath = 128

// join appends a JSON pointer to a dotted path.
func join(prefix string, p jsontext.Pointer) string {
	for token := range p.Tokens() {
		if len(prefix) > maxPath {
			return prefix + ".…"
		}
		prefix = dotted(prefix, token)
	}
	return prefix
}

// dotted joins two parts of a path, either of which may be empty.
func dotted(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "." + b
}

// typeName describes a Go type in the words of JSON.
func typeName(t reflect.Type) string {
	if t == nil {
		return "another type"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return "an integer"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	default:
		return "an object"
	}
}

// kindName describes what was found instead.
func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't':
		return "true"
	case 'f':
		return "false"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return "something else"
}
