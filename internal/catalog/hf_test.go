package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// hub is a server that does as Hugging Face does: it announces the file and redirects to a storage host, which serves
// ranges. Its fields change how it behaves; set them before the first request.
type hub struct {
	t          *testing.T
	data       []byte
	announce   bool                // send X-Linked-Etag and X-Linked-Size
	etag       string              // of the storage's answer
	storage    http.HandlerFunc    // takes the place of the storage, nil for the usual one
	cutAfter   int                 // the storage breaks each connection after so many bytes; 0 for never
	mu         sync.Mutex          // guards the rest
	requests   []string            // "METHOD path range if-range", of hub and storage
	tokens     map[string][]string // Authorization by host of the request
	server     *httptest.Server
	storageURL string
}

func newHub(t *testing.T) *hub {
	h := &hub{t: t, data: content(), announce: true, etag: `"v1"`, tokens: map[string][]string{}}
	h.server = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(h.server.Close)
	// The same server under another host name, so that the client sees a redirect to another host.
	h.storageURL = strings.Replace(h.server.URL, "127.0.0.1", "localhost", 1)
	return h
}

func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	h.mu.Lock()
	h.requests = append(h.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Range")+" "+r.Header.Get("If-Range")))
	h.tokens[host] = append(h.tokens[host], r.Header.Get("Authorization"))
	h.mu.Unlock()
	switch {
	case r.URL.Path == "/storage" && h.storage != nil:
		h.storage(w, r)
	case r.URL.Path == "/storage":
		h.serveStorage(w, r)
	case r.URL.Path == "/org/repo/resolve/main/m.gguf":
		if h.announce {
			w.Header().Set("X-Linked-Etag", `"`+hashOf(string(h.data))+`"`)
			w.Header().Set("X-Linked-Size", strconv.Itoa(len(h.data)))
		}
		http.Redirect(w, r, h.storageURL+"/storage", http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}

func (h *hub) serveStorage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", h.etag)
	if h.cutAfter == 0 {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(h.data)))
		return
	}
	from := 0
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil && r.Header.Get("If-Range") == h.etag {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(h.data)-1, len(h.data)))
		w.Header().Set("Content-Length", strconv.Itoa(len(h.data)-from))
		w.WriteHeader(http.StatusPartialContent)
	} else {
		from = 0
		w.Header().Set("Content-Length", strconv.Itoa(len(h.data)))
	}
	end := min(from+h.cutAfter, len(h.data))
	_, _ = w.Write(h.data[from:end])
	if end < len(h.data) {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // breaks the connection
	}
}

// catalog returns a Catalog whose model comes from the hub, then from more.
func (h *hub) catalog(r Reporter, more ...Source) *Catalog {
	h.t.Helper()
	cfg := Config{Dir: h.t.TempDir(), HFEndpoint: h.server.URL + "/", HFToken: "secret", Reporter: r, AnswerTimeout: 10 * time.Second}
	return newCatalog(cfg, []Model{testModel(append([]Source{HF{Repo: "org/repo", File: "m.gguf"}}, more...)...)})
}

func (h *hub) seen() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.requests, "\n")
}

func TestHF(t *testing.T) {
	h, r := newHub(t), &recorder{}
	c := h.catalog(r)
	l, err := c.Pull(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	checkPulled(t, c, l)
	if l.Source != "hf:org/repo/m.gguf" || l.License != "MIT" || r.progress != l.Size {
		t.Errorf("pulled %+v, progress %d", l, r.progress)
	}
	if h.tokens["127.0.0.1"][0] != "Bearer secret" || h.tokens["localhost"][0] != "" {
		t.Errorf("HF_TOKEN went to %q", h.tokens)
	}
	if want := "GET /org/repo/resolve/main/m.gguf\nGET /storage"; h.seen() != want {
		t.Errorf("requests:\n%s\nwant\n%s", h.seen(), want)
	}
}

// TestHFReference pulls a file that the catalogue does not know. The same file under two names is kept once.
func TestHFReference(t *testing.T) {
	h := newHub(t)
	c := h.catalog(nil)
	l, err := c.Pull(context.Background(), "hf:org/repo/m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	checkPulled(t, c, l)
	if _, err := c.Pull(context.Background(), "test"); err != nil {
		t.Fatal(err)
	}
	want := "HEAD /org/repo/resolve/main/m.gguf\nGET /org/repo/resolve/main/m.gguf\nGET /storage"
	if h.seen() != want {
		t.Errorf("requests:\n%s\nwant\n%s", h.seen(), want)
	}
	path, err := c.Resolve(context.Background(), "hf:org/repo/m.gguf")
	if err != nil || path != l.Path {
		t.Errorf("Resolve = %s, %v", path, err)
	}
	if l, err := c.describe(l.SHA256); err != nil || strings.Join(l.Names, " ") != "hf:org/repo/m.gguf test:1m" {
		t.Errorf("names %q, %v", l.Names, err)
	}
}

// TestHFUnverified pulls from a mirror that announces neither sha256 nor size.
func TestHFUnverified(t *testing.T) {
	h, r := newHub(t), &recorder{}
	h.announce = false
	c := h.catalog(r)
	l, err := c.Pull(context.Background(), "hf:org/repo/m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	checkPulled(t, c, l)
	if !r.has("could not be verified") {
		t.Errorf("notes %q", r.notes)
	}
}

// TestHFResume has a server that breaks every connection: the rest is asked for with the first answer's ETag.
func TestHFResume(t *testing.T) {
	h, r := newHub(t), &recorder{}
	h.cutAfter = 400_000
	c := h.catalog(r)
	l, err := c.Pull(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	checkPulled(t, c, l)
	want := `GET /org/repo/resolve/main/m.gguf
GET /storage
GET /org/repo/resolve/main/m.gguf bytes=400000- "v1"
GET /storage bytes=400000- "v1"
GET /org/repo/resolve/main/m.gguf bytes=800000- "v1"
GET /storage bytes=800000- "v1"`
	if h.seen() != want {
		t.Errorf("requests:\n%s\nwant\n%s", h.seen(), want)
	}
	if !r.has("resuming hf:org/repo/m.gguf at 400000 bytes") {
		t.Errorf("notes %q", r.notes)
	}
}

// TestHFInterrupted ends the context in the middle, as ^C does; the next pull goes on.
func TestHFInterrupted(t *testing.T) {
	h := newHub(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	interrupt := errors.New("interrupted")
	h.storage = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", h.etag)
		w.Header().Set("Content-Length", strconv.Itoa(len(h.data)))
		_, _ = w.Write(h.data[:300_000])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	c := h.catalog(cancelAt{300_000, func() { cancel(interrupt) }})
	_, err := c.Pull(ctx, "test")
	if !errors.Is(err, interrupt) || !strings.Contains(err.Error(), "what has arrived is kept") {
		t.Fatalf("Pull = %v", err)
	}
	h.storage = nil
	l, err := c.Pull(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	checkPulled(t, c, l)
	if want := "GET /storage bytes=300000- \"v1\""; !strings.HasSuffix(h.seen(), want) {
		t.Errorf("requests:\n%s\nwant last %s", h.seen(), want)
	}
}

// cancelAt is a Reporter that acts when so much has arrived.
type cancelAt struct {
	bytes int64
	act   func()
}

func (cancelAt) Note(string) {}
func (c cancelAt) Progress(done, _ int64) {
	if done >= c.bytes {
		c.act()
	}
}

// TestHFChanged has another file on the server when the pull goes on: the server sends it whole because of If-Range,
// or the two halves do not fit together and the sha256 finds out. Both end with the right file.
func TestHFChanged(t *testing.T) {
	for _, etag := range []string{`"v1"`, `"v0"`, `W/"v1"`} {
		h, r := newHub(t), &recorder{}
		c := h.catalog(r)
		m := c.models[0]
		p, err := openPart(c.partPath(m.SHA256, m.Sources[0]))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.setOrigin(origin{ETag: etag}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		p.close()
		l, err := c.Pull(context.Background(), "test")
		if err != nil {
			t.Fatalf("etag %s: %v", etag, err)
		}
		checkPulled(t, c, l)
		if mixed := etag != `"v0"`; r.has("beginning again: wrong file") != mixed {
			t.Errorf("etag %s: notes %q", etag, r.notes)
		}
	}
}

// TestHFRefused has the reason for each refusal, and goes on to the next source.
func TestHFRefused(t *testing.T) {
	for _, c := range []struct {
		status int
		token  string
		want   string
	}{
		{401, "", "401 Unauthorized: the repository is private or gated, or does not exist; set HF_TOKEN"},
		{403, "x", "403 Forbidden: HF_TOKEN does not open this repository; accept its terms on its page first"},
		{404, "", "404 Not Found: no such repository or file"},
		{429, "", "429 Too Many Requests: too many requests; HF_TOKEN raises the limit"},
		{503, "", "the server answered 503 Service Unavailable"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) }))
		r := &recorder{}
		source := HF{Repo: "org/repo", File: "m.gguf"}
		cat := newCatalog(Config{Dir: t.TempDir(), HFEndpoint: server.URL, HFToken: c.token, Reporter: r},
			[]Model{testModel(source, given{data: content()})})
		l, err := cat.Pull(context.Background(), "test")
		if err != nil {
			t.Fatal(err)
		}
		checkPulled(t, cat, l)
		if !r.has("skipping hf:org/repo/m.gguf: " + c.want) {
			t.Errorf("status %d: notes %q, want %q", c.status, r.notes, c.want)
		}
		if _, err := cat.Pull(context.Background(), "hf:org/repo/m.gguf"); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("status %d: Pull of a reference = %v, want %s", c.status, err, c.want)
		}
		server.Close()
	}
}

// TestHFWrongFile does not download what is announced to be another file.
func TestHFWrongFile(t *testing.T) {
	h, r := newHub(t), &recorder{}
	h.data = []byte("another file")
	c := h.catalog(r, given{data: content()})
	l, err := c.Pull(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	checkPulled(t, c, l)
	if !r.has("skipping hf:org/repo/m.gguf: wrong file: the server announces sha256 " + hashOf("another file")) {
		t.Errorf("notes %q", r.notes)
	}

	// Without an announcement, a longer and a shorter file are found out too.
	for _, data := range [][]byte{append(content(), 'x'), content()[:1000]} {
		h, r := newHub(t), &recorder{}
		h.data, h.announce = data, false
		c := h.catalog(r)
		if _, err := c.Pull(context.Background(), "test"); err == nil {
			t.Errorf("Pull of %d bytes gave no error", len(data))
		}
	}
}

// TestHFSilent has a server that accepts connections and never answers. It is skipped after AnswerTimeout.
func TestHFSilent(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	defer server.Close()
	defer close(release)
	r := &recorder{}
	c := newCatalog(Config{Dir: t.TempDir(), HFEndpoint: server.URL, AnswerTimeout: 20 * time.Millisecond, Reporter: r},
		[]Model{testModel(HF{Repo: "org/repo", File: "m.gguf"}, given{data: content()})})
	l, err := c.Pull(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	checkPulled(t, c, l)
	if !r.has("skipping hf:org/repo/m.gguf: no answer within 20ms") {
		t.Errorf("notes %q", r.notes)
	}
	if _, err := c.Pull(context.Background(), "hf:org/repo/m.gguf"); !errors.Is(err, errNoAnswer) {
		t.Errorf("Pull of a reference = %v", err)
	}
}

// TestHFStalls has a server that stops in the middle, and one that is not there at all.
func TestHFStalls(t *testing.T) {
	h, r := newHub(t), &recorder{}
	h.storage = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(h.data)))
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	c := h.catalog(r)
	c.cfg.StallTimeout = 20 * time.Millisecond
	if _, err := c.Pull(context.Background(), "test"); !errors.Is(err, errStalled) {
		t.Errorf("Pull = %v, want %v", err, errStalled)
	}
	h.server.Close()
	if _, err := c.Pull(context.Background(), "test"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("Pull without a server = %v", err)
	}
}

// TestConcurrentPulls downloads once, whoever comes first.
func TestConcurrentPulls(t *testing.T) {
	h, r := newHub(t), &recorder{}
	started, second := make(chan struct{}), make(chan struct{})
	h.storage = func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-second // a second pull waits for the lock by now
		_, _ = io.Copy(w, strings.NewReader(string(h.data)))
	}
	c := h.catalog(r)
	results := make(chan error, 2)
	go func() {
		_, err := c.Pull(context.Background(), "test")
		results <- err
	}()
	<-started
	other := newCatalog(c.cfg, c.models)
	other.cfg.Reporter = onNote(func() { close(second) })
	go func() {
		_, err := other.Pull(context.Background(), "test")
		results <- err
	}()
	for range 2 {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	if want := "GET /org/repo/resolve/main/m.gguf\nGET /storage"; h.seen() != want {
		t.Errorf("requests:\n%s\nwant\n%s", h.seen(), want)
	}
}

// onNote is a Reporter that acts on each note.
type onNote func()

func (f onNote) Note(string)         { f() }
func (onNote) Progress(int64, int64) {}
