package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// HF is a file in a repository on Hugging Face.
type HF struct {
	Repo     string // org/repo
	Revision string // branch, tag or commit; "" means main
	File     string // path inside the repository
}

// String gives the reference as people write it.
func (s HF) String() string { return hfPrefix + s.Repo + "/" + s.File }

func (HF) kind() string { return "hf" }

// url is where the file is downloaded from.
func (s HF) url(endpoint string) string {
	revision := s.Revision
	if revision == "" {
		revision = "main"
	}
	return endpoint + "/" + s.Repo + "/resolve/" + url.PathEscape(revision) + "/" + (&url.URL{Path: s.File}).EscapedPath()
}

// announcement is what an answer says about the file. Hugging Face sends the sha256 and the size of large files in
// headers of the redirect to its storage, not in those of the storage's own answer.
type announcement struct {
	sha256 string // "" when not announced
	size   int64  // 0 when not announced
}

// note takes what the headers of an answer or redirect say.
func (a *announcement) note(h http.Header) {
	if tag := strings.Trim(strings.TrimPrefix(h.Get("X-Linked-Etag"), "W/"), `"`); isSHA256(tag) {
		a.sha256 = strings.ToLower(tag)
	}
	if n, err := strconv.ParseInt(h.Get("X-Linked-Size"), 10, 64); err == nil && n > 0 {
		a.size = n
	}
}

func isSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// errNoAnswer is the cause when a server takes too long to begin its answer.
var errNoAnswer = errors.New("no answer")

// errStalled is the cause when a server stops in the middle.
var errStalled = errors.New("nothing arrived")

// announced asks for sha256 and size of the file.
func (s HF) announced(ctx context.Context, cfg *Config) (sha256 string, size int64, err error) {
	r, err := s.request(ctx, cfg, http.MethodHead, nil)
	if err != nil {
		return "", 0, err
	}
	defer r.close()
	if r.StatusCode >= 300 && r.announcement.sha256 == "" || r.StatusCode >= 400 {
		return "", 0, s.refused(r.Response, cfg)
	}
	if r.announcement.size == 0 && r.StatusCode == http.StatusOK {
		r.announcement.size = max(r.ContentLength, 0)
	}
	return r.announcement.sha256, r.announcement.size, nil
}

// fetch downloads what is missing. A connection that breaks after it brought something is resumed.
func (s HF) fetch(t *transfer) error {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		before := t.part.size
		err := s.fetchOnce(t)
		again := err != nil && t.ctx.Err() == nil && t.part.size > before && attempt < attempts
		if _, isLocal := errors.AsType[*localError](err); isLocal || !again {
			return err
		}
		t.cfg.Reporter.Note(fmt.Sprintf("resuming %s at %d bytes: %v", s, t.part.size, err))
	}
}

// fetchOnce makes one request for the bytes after the end of the part and appends them.
func (s HF) fetchOnce(t *transfer) error {
	if t.model.Size > 0 && t.part.size >= t.model.Size {
		return t.part.truncate(t.model.Size) // all is here, only checking is left
	}
	header := http.Header{}
	if t.part.size > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", t.part.size))
		if tag := t.part.origin.ETag; tag != "" && !strings.HasPrefix(tag, "W/") {
			header.Set("If-Range", tag)
		}
	}
	r, err := s.request(t.ctx, t.cfg, http.MethodGet, header)
	if err != nil {
		return err
	}
	defer r.close()
	if have, want := r.announcement.sha256, t.model.SHA256; have != "" && want != "" && have != want {
		return fmt.Errorf("%w: the server announces sha256 %s, want %s", errWrongFile, have, want)
	}
	switch r.StatusCode {
	case http.StatusOK: // the whole file, perhaps because it changed since the part was begun
		err = t.part.truncate(0)
	case http.StatusPartialContent:
		err = checkContentRange(r.Header.Get("Content-Range"), t.part.size)
	case http.StatusRequestedRangeNotSatisfiable: // the part is longer than the file, so not a part of it
		return fmt.Errorf("%w: nothing after the first %d bytes", errWrongFile, t.part.size)
	default:
		err = s.refused(r.Response, t.cfg)
	}
	if err != nil {
		return err
	}
	if err := t.part.setOrigin(origin{ETag: r.Header.Get("ETag")}); err != nil {
		return err
	}
	return s.copyBody(t, r)
}

// copyBody appends the body, but never more than the model's size.
func (s HF) copyBody(t *transfer, r *response) error {
	if t.model.Size == 0 && r.ContentLength > 0 {
		t.model.Size = t.part.size + r.ContentLength
	}
	buffer := make([]byte, 256<<10)
	for {
		n, err := r.read(buffer, t.cfg.StallTimeout)
		if room := t.model.Size - t.part.size; t.model.Size > 0 && int64(n) > room {
			return fmt.Errorf("%w: longer than %d bytes", errWrongFile, t.model.Size)
		}
		if _, err := t.part.Write(buffer[:n]); err != nil {
			return err
		}
		t.progress()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", t.part.size, err)
		}
	}
	if t.part.size < t.model.Size {
		return fmt.Errorf("after %d of %d bytes: %w", t.part.size, t.model.Size, io.ErrUnexpectedEOF)
	}
	return nil
}

// response is an answer that has begun.
type response struct {
	*http.Response
	announcement announcement
	cancel       context.CancelCauseFunc
}

// request sends a request and waits for the beginning of the answer, over all redirects, for AnswerTimeout.
func (s HF) request(ctx context.Context, cfg *Config, method string, header http.Header) (*response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(cfg.AnswerTimeout, func() {
		cancel(fmt.Errorf("%w within %v", errNoAnswer, cfg.AnswerTimeout))
	})
	defer limit.Stop()
	request, err := http.NewRequestWithContext(ctx, method, s.url(cfg.HFEndpoint), nil)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	maps.Copy(request.Header, header)
	request.Header.Set("User-Agent", "quire")
	request.Header.Set("Accept-Encoding", "identity") // bytes as they are, or ranges would mean something else
	if cfg.HFToken != "" {
		request.Header.Set("Authorization", "Bearer "+cfg.HFToken) // the client drops it when redirected elsewhere
	}
	r := &response{cancel: cancel}
	client := &http.Client{CheckRedirect: func(next *http.Request, via []*http.Request) error {
		r.announcement.note(next.Response.Header)
		switch {
		case method == http.MethodHead && r.announcement.sha256 != "":
			return http.ErrUseLastResponse // all that was asked is known
		case len(via) >= 10:
			return errors.New("more than 10 redirects")
		}
		return nil
	}}
	r.Response, err = client.Do(request)
	if err != nil {
		err = plainNetworkError(ctx, err)
		cancel(nil)
		return nil, err
	}
	r.announcement.note(r.Header)
	return r, nil
}

// plainNetworkError leaves out the URL that net/http puts before the cause, and prefers the reason for a cancelled request.
func plainNetworkError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if urlError, ok := errors.AsType[*url.Error](err); ok {
		err = urlError.Err
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("no network or no such host: %w", err)
	}
	return err
}

// read reads from the body; when nothing arrives within limit it breaks the transfer off.
func (r *response) read(b []byte, limit time.Duration) (int, error) {
	stalled := fmt.Errorf("%w for %v", errStalled, limit)
	timer := time.AfterFunc(limit, func() { r.cancel(stalled) })
	n, err := r.Body.Read(b)
	if !timer.Stop() && err != nil && !errors.Is(err, io.EOF) {
		return n, stalled
	}
	return n, err
}

// close ends the request.
func (r *response) close() {
	r.cancel(nil)
	r.Body.Close()
}

// refused says what a status means here.
func (s HF) refused(r *http.Response, cfg *Config) error {
	switch r.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		if cfg.HFToken == "" {
			return fmt.Errorf("%s: the repository is private or gated, or does not exist; set HF_TOKEN", r.Status)
		}
		return fmt.Errorf("%s: HF_TOKEN does not open this repository; accept its terms on its page first", r.Status)
	case http.StatusNotFound:
		return fmt.Errorf("%s: no such repository or file", r.Status)
	case http.StatusTooManyRequests:
		return fmt.Errorf("%s: too many requests; HF_TOKEN raises the limit", r.Status)
	}
	return fmt.Errorf("the server answered %s", r.Status)
}

// checkContentRange makes sure that an answer begins where the part ends.
func checkContentRange(value string, want int64) error {
	from, _, _ := strings.Cut(strings.TrimPrefix(value, "bytes "), "-")
	if at, err := strconv.ParseInt(from, 10, 64); err != nil || at != want {
		return fmt.Errorf("asked for bytes from %d, the server sent range %q", want, value)
	}
	return nil
}
