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

	"golang.org/x/sync/semaphore"

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
	counted := &countedBody{Reader: http.MaxBytesReader(w, r.Body, s.opts.MaxRequestBytes), open: s.openBodies}
	defer counted.release()
	body, err := io.ReadAll(counted)
	if err != nil {
		w.Header().Set("Connection", "close")
		return s.bodyError(err)
	}
	// The request has come whole; from now on the connection is only read to see the client leave, however long that takes.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // test recorders have no deadlines
	return openai.Decode(body, v)
}

// maxOpenBodies bounds the bytes of bodies that are read at a time, of all requests together: beside it, many clients that
// each keep to MaxRequestBytes could still take all memory. One body may always have MaxRequestBytes.
const maxOpenBodies = 256 << 20

// errOpenBodies refuses a body for which there is no room beside the others.
var errOpenBodies = errors.New("too many bodies at once")

// countedBody counts what is read of a body, until release, against maxOpenBodies; it fails with errOpenBodies.
type countedBody struct {
	io.Reader
	open *semaphore.Weighted // the server's
	held int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if !b.open.TryAcquire(int64(n)) {
		return 0, errOpenBodies
	}
	b.held += int64(n)
	return n, err
}

func (b *countedBody) release() { b.open.Release(b.held) }

func isJSON(kind string) bool { return kind == "application/json" || strings.HasSuffix(kind, "+json") }

// bodyError words what went wrong while a body was read.
func (s *Server) bodyError(err error) error {
	if err == errOpenBodies {
		return &statusError{
			http.StatusServiceUnavailable, typeUnavailable, "",
			fmt.Sprintf("the bodies of requests being read exceed %d bytes: try again", s.openBytes),
		}
	}
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
