package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quire-ai/quire/internal/chat"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/metric"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/internal/tokenizer"
	"github.com/quire-ai/quire/sched"
)

// The vocabulary of the tests: every byte, then pieces for scripts, then the special tokens.
const (
	firstPiece = 256
	eosPiece   = "<|im_end|>"
)

var pieces = []string{"AB", "D E", "CD", " X", "hello", " world", "qq"}

const template = `{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// newTokenizer makes a byte-level tokenizer with one merge: a text has a token for each byte but qq.
func newTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	spelled := func(text string) string { // GPT-2's bytes_to_unicode
		var b strings.Builder
		for i := range len(text) {
			b.WriteRune(spelling(text[i]))
		}
		return b.String()
	}
	cfg := tokenizer.Config{Model: "gpt2", Pre: "gpt-2", Merges: []string{"q q"}, Special: tokenizer.NoSpecialIDs()}
	for i := range 256 {
		cfg.Tokens = append(cfg.Tokens, spelled(string([]byte{byte(i)})))
		cfg.Types = append(cfg.Types, tokenizer.TypeNormal)
	}
	for _, p := range pieces {
		cfg.Tokens = append(cfg.Tokens, spelled(p))
		cfg.Types = append(cfg.Types, tokenizer.TypeNormal)
	}
	for _, p := range []string{"<|im_start|>", eosPiece} {
		cfg.Tokens = append(cfg.Tokens, p)
		cfg.Types = append(cfg.Types, tokenizer.TypeControl)
	}
	cfg.Special.EOS = int32(len(cfg.Tokens) - 1)
	tok, err := tokenizer.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func spelling(c byte) rune {
	printable := func(c int) bool { return c >= '!' && c <= '~' || c >= 0xa1 && c <= 0xac || c >= 0xae && c <= 0xff }
	if printable(int(c)) {
		return rune(c)
	}
	n := 0
	for i := range int(c) {
		if !printable(i) {
			n++
		}
	}
	return rune(256 + n)
}

// setup is how a test's server differs from the usual.
type setup struct {
	blocks  int // of 16 tokens; 64 by default
	seqs    int // 8 by default
	maxLen  int // 512 by default
	budget  int // 64 by default
	queue   int // most waiting requests
	stall   time.Duration
	options Options
	toy     executortest.Options
}

// fixture is a server over the toy executor.
type fixture struct {
	*Server
	t       testing.TB
	tok     *tokenizer.Tokenizer
	metrics *metric.Metrics
	logs    *syncBuffer

	script atomic.Pointer[[]int32] // what every request is answered with; nil leaves it to the toy
	steps  atomic.Int64            // steps computed
}

func newFixture(t testing.TB, s setup) *fixture {
	t.Helper()
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&s.blocks, 64)
	set(&s.seqs, 8)
	set(&s.maxLen, 512)
	set(&s.budget, 64)
	f := &fixture{t: t, tok: newTokenizer(t), logs: &syncBuffer{}}
	parsed, err := chat.Parse(template)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(f.logs, &slog.HandlerOptions{Level: slog.LevelInfo}))
	f.metrics = metric.New()
	s.toy.Blocks, s.toy.BlockSize, s.toy.Vocab, s.toy.Script = s.blocks, 16, f.tok.VocabSize(), f.next
	step := s.toy.Step
	s.toy.Step = func(p *sched.Plan) error {
		f.steps.Add(1)
		if step != nil {
			return step(p)
		}
		return nil
	}
	e := engine.New(engine.Config{
		Sched: sched.Config{
			Blocks: s.blocks, BlockSize: 16, MaxNumSeqs: s.seqs, MaxNumBatchedTokens: s.budget, MaxModelLen: s.maxLen,
		},
		Vocab: f.tok.VocabSize(), MaxQueuedRequests: s.queue, StallAfter: s.stall, LogInterval: -1,
		Observer: f.metrics.Observer(), Log: log,
	}, executortest.New(s.toy))
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	f.metrics.Describe(metric.Options{Engine: e, Model: "toy", MaxModelLen: s.maxLen})
	o := s.options
	o.Model = &llm.Model{
		Name: "toy", Path: "/models/toy.gguf", Tokenizer: f.tok, Template: parsed, Engine: e, MaxModelLen: s.maxLen,
		Sampling: sample.Default(), SpecialTokens: map[string]string{"eos_token": eosPiece},
	}
	if o.MaxRequestBytes == 0 {
		o.MaxRequestBytes = 1 << 20
	}
	o.MaxLogprobs, o.StreamInterval, o.Version, o.Metrics, o.Log = 20, max(o.StreamInterval, 1), "test", f.metrics, log
	f.Server = New(o)
	return f
}

// next is the toy's script.
func (f *fixture) next(_ sched.RequestID, _, outputs []int32) int32 {
	script := f.script.Load()
	if script == nil {
		return -1
	}
	if len(outputs) < len(*script) {
		return (*script)[len(outputs)]
	}
	return 'z'
}

// play sets what every request is answered with from now on: the text of a piece of the vocabulary, or bytes.
func (f *fixture) play(texts ...string) {
	script := []int32{}
	for _, text := range texts {
		script = append(script, f.ids(text)...)
	}
	f.script.Store(&script)
}

// ids are the tokens of a text: one if it is a piece, else one for each byte.
func (f *fixture) ids(text string) []int32 {
	if i := slices.Index(pieces, text); i >= 0 {
		return []int32{int32(firstPiece + i)}
	}
	if text == eosPiece {
		return []int32{f.tok.EOS()}
	}
	return f.tok.Encode(text, tokenizer.Options{})
}

// do sends a request past the network.
func (f *fixture) do(method, path, body string, header ...string) *httptest.ResponseRecorder {
	f.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	f.ServeHTTP(rec, r)
	return rec
}

// listen serves on a real connection until the test ends.
func (f *fixture) listen() (addr string) {
	f.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx, l, time.Second) }()
	f.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	})
	return l.Addr().String()
}

// idle waits until the engine has nothing to do, and reports a request or a block that is left over.
func (f *fixture) idle() {
	f.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		s := f.model.Engine.Snapshot()
		if s.Live == 0 && s.Running == 0 && s.FreeBlocks == s.UsableBlocks {
			return
		}
		select {
		case <-deadline:
			f.t.Fatalf("not idle: %d live, %d running, %d waiting, %d of %d blocks free", s.Live, s.Running, s.Waiting, s.FreeBlocks, s.UsableBlocks)
		case <-time.After(time.Millisecond):
		}
	}
}

// syncBuffer collects a log that several goroutines write.
type syncBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// rawPost is a request for a completion as it goes over the wire.
func rawPost(body string) string {
	return fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body)
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
