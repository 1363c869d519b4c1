package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/openai"
	"github.com/quire-ai/quire/internal/sample"
)

// The types of errors, as vLLM names them.
const (
	typeBadBody     = "Bad Request"
	typeBadRequest  = "BadRequestError"
	typeNotFound    = "NotFoundError"
	typeInternal    = "InternalServerError"
	typeUnavailable = "ServiceUnavailableError"
)

// The bytes of an error that are sent and logged, at most: what it quotes is the client's, and may be megabytes.
const (
	maxMessage = 2048
	maxParam   = 256
)

// apiError is an error as it is sent.
func apiError(err error) *openai.Error {
	e := classify(err)
	e.Message, e.Param = clip(e.Message, maxMessage), clip(e.Param, maxParam)
	return e
}

// clip cuts a text that has more than most bytes.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// classify chooses status and type of an error. It is the only place that does.
func classify(err error) *openai.Error {
	if e, ok := errors.AsType[*statusError](err); ok {
		return &openai.Error{Message: e.message, Type: e.typ, Param: e.param, Code: e.code}
	}
	if fault, ok := errors.AsType[*openai.Fault](err); ok {
		e := badRequest(fault.Param, fault.Message)
		if fault.Body {
			e.Type = typeBadBody
		}
		return e
	}
	if e, ok := errors.AsType[*sample.ParamError](err); ok {
		return badRequest(e.Param, e.Error())
	}
	if e, ok := errors.AsType[*engine.TooLongError](err); ok {
		return badRequest("input_tokens", e.Error())
	}
	if e, ok := errors.AsType[*promptError](err); ok {
		return badRequest("messages", e.Error())
	}
	if _, ok := errors.AsType[*engine.QueueFullError](err); ok || unavailable(err) {
		return &openai.Error{Message: err.Error(), Type: typeUnavailable, Code: http.StatusServiceUnavailable}
	}
	if errors.Is(err, engine.ErrCacheInUse) {
		return &openai.Error{Message: err.Error(), Type: http.StatusText(http.StatusConflict), Code: http.StatusConflict}
	}
	if errors.Is(err, engine.ErrEmptyPrompt) {
		return badRequest("prompt", err.Error())
	}
	return &openai.Error{Message: err.Error(), Type: typeInternal, Code: http.StatusInternalServerError}
}

// unavailable reports whether err says that the server is ending.
func unavailable(err error) bool {
	return errors.Is(err, engine.ErrDraining) || errors.Is(err, engine.ErrClosed) || errors.Is(err, errCutOff)
}

func badRequest(param, message string) *openai.Error {
	return &openai.Error{Message: message, Type: typeBadRequest, Param: param, Code: http.StatusBadRequest}
}

// statusError is an error whose status is known where it occurs.
type statusError struct {
	code    int
	typ     string
	param   string
	message string
}

func (e *statusError) Error() string { return e.message }

func badValue(param, format string, args ...any) error {
	return &statusError{http.StatusBadRequest, typeBadRequest, param, fmt.Sprintf(format, args...)}
}

func notFound(param, format string, args ...any) error {
	return &statusError{http.StatusNotFound, typeNotFound, param, fmt.Sprintf(format, args...)}
}

// writeError answers with an error. The status line must not have been written yet.
func writeError(w http.ResponseWriter, e *openai.Error) {
	if e.Code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, e.Code, e.Append(nil))
}

// writeJSON answers with a body.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has gone: nobody is left to tell
}

// gone reports whether err only says that the client has left.
func gone(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	return cause != nil && cause != errCutOff && errors.Is(err, cause)
}
