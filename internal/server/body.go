package server

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/quire-ai/quire/internal/openai"
)

// decode reads the body of a request into v.
//
// Only JSON is accepted by type too: a web page of another origin can make a browser post text, but not JSON, to a server
// on the same machine without asking.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, v any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !isJSON(kind) {
		return &statusError{
			http.StatusBadRequest, typeBadBody, "",
			fmt.Sprintf("content type %q is not application/json", r.Header.Get("Content-Type")),
		}
	}
	if r.ContentLength > s.opts.MaxRequestBytes { // said beforehand: not a byte is read, nor asked for by 100 Continue
		w.Header().Set("Connection", "close")
		return s.bodyError(&http.MaxBytesError{Limit: s.opts.MaxRequestBytes})
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.opts.MaxRequestBytes))
	if err != nil {
		w.Header().Set("Connection", "close")
		return s.bodyError(err)
	}
	// The request has come whole; from now on the connection is only read to see the client leave, however long that takes.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // test recorders have no deadlines
	return openai.Decode(body, v)
}

func isJSON(kind string) bool { return kind == "application/json" || strings.HasSuffix(kind, "+json") }

// bodyError words what went wrong while a body was read.
func (s *Server) bodyError(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &statusError{
			http.StatusRequestEntityTooLarge, http.StatusText(http.StatusRequestEntityTooLarge), "",
			fmt.Sprintf("the body exceeds %d bytes (--max-request-bytes)", s.opts.MaxRequestBytes),
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &statusError{
			http.StatusRequestTimeout, http.StatusText(http.StatusRequestTimeout), "",
			fmt.Sprintf("the request did not arrive within %v", requestTimeout),
		}
	}
	return &statusError{http.StatusBadRequest, typeBadBody, "", fmt.Sprintf("read body: %v", err)}
}
