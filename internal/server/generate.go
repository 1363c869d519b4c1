package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/openai"
)

// greedyBelow is the temperature under which sampling is greedy, vLLM's _SAMPLING_EPS.
const greedyBelow = 1e-5

// job is a request to generate, decoded and checked: what both kinds of completion have in common.
type job struct {
	header  openai.Header
	common  *openai.Common
	prompts []prompt
	ask     engine.Request // what each choice asks; Prompt and the seed differ
	stream  streaming

	logprobs   bool   // show those of the answer
	promptOnly bool   // echo without an answer
	echo       string // shown before the answer
}

// streaming is what a stream tells beside the text.
type streaming struct {
	usage      bool // one more frame at the end
	continuous bool // in each frame
	interval   int  // tokens a frame
}

// choice is one answer that the engine works on.
type choice struct {
	index  int
	prompt *prompt
	handle *engine.Handle
	text   *engine.TextStream
	begun  bool
	tokens int // so far
}

// generation wraps a handler that generates: it counts it and answers with its error.
func (s *Server) generation(handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.active.Add(1)
		defer s.active.Add(-1)
		err := handle(w, r)
		switch {
		case err == nil:
		case gone(r.Context(), err):
			note(w, slog.Bool("client_gone", true))
			panic(http.ErrAbortHandler) // returning would send an empty 200 to a client that only stopped sending
		default:
			e := apiError(err)
			note(w, slog.String("error", e.Message))
			if e.Code == http.StatusInternalServerError {
				s.log.Error("request failed", slog.String("path", r.URL.Path), slog.Any("error", err))
			}
			writeError(w, e)
		}
	}
}

// newJob fills in what does not depend on the kind of completion.
func (s *Server) newJob(w http.ResponseWriter, r *http.Request, kind openai.Kind, c *openai.Common) (*job, error) {
	model, err := s.servedName(c.Model)
	if err != nil {
		return nil, err
	}
	id := requestID(r, c.RequestID)
	w.Header().Set("X-Request-Id", id)
	prefix := "cmpl-"
	if kind == openai.Chat {
		prefix = "chatcmpl-"
	}
	j := &job{header: openai.Header{Kind: kind, ID: prefix + id, Model: model, Created: time.Now()}, common: c}
	j.ask = engine.Request{
		ClientID: j.header.ID, MinTokens: c.MinTokens, EOS: s.model.Tokenizer.EOG(), IgnoreEOS: c.IgnoreEOS,
		StopTokenIDs: c.StopTokenIDs, Priority: c.Priority, Sampling: s.sampling(c),
	}
	if n := c.Choices(); n > 1 && j.ask.Sampling.Temperature < greedyBelow {
		return nil, badValue("n", "n must be 1 with temperature %v: all choices would be equal, got %d", j.ask.Sampling.Temperature, n)
	}
	if c.CacheSalt != nil {
		j.ask.CacheSalt = *c.CacheSalt
	}
	set(&j.ask.CacheHitThreshold, c.CacheHitThreshold)
	s.ignoreTransfer(w, c)
	j.stream.interval = s.opts.StreamInterval
	if c.StreamInterval != nil {
		j.stream.interval = *c.StreamInterval
	}
	if o := c.StreamOptions; o != nil {
		j.stream.usage, j.stream.continuous = o.IncludeUsage, o.IncludeUsage && o.ContinuousUsageStats
	}
	note(w, slog.String("request_id", j.header.ID))
	return j, nil
}

// requestID is the client's own name of the request, else a new one. The engine has names of its own: two requests with
// one id do not meet.
func requestID(r *http.Request, field string) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" {
		id = field
	}
	if id != "" && len(id) <= 256 && printable(id) {
		return id
	}
	var random [16]byte
	rand.Read(random[:])
	return hex.EncodeToString(random[:])
}

// printable reports whether s can stand in a header and in a log.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// generate asks the engine for every choice of j and sends the answer.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, j *job) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel() // ends what is still in the engine
	if s.opts.Metrics != nil {
		s.opts.Metrics.Asked(j.common.Choices())
	}
	choices, err := s.submit(ctx, j)
	if err != nil {
		return err
	}
	out := newAnswer(w, s, j, choices)
	err = each(ctx, choices, func(c *choice, d engine.Delta) error { return out.add(c, s.delta(j, c, d)) })
	note(w, slog.Int("prompt_tokens", out.usage().PromptTokens), slog.Int("completion_tokens", out.usage().CompletionTokens))
	return out.end(err)
}

// submit hands every choice to the engine, in order of index. What one refuses, all refuse.
func (s *Server) submit(ctx context.Context, j *job) ([]*choice, error) {
	var choices []*choice
	key := s.seeds.next()
	if j.common.Seed != nil {
		key = uint64(*j.common.Seed)
	}
	for p := range j.prompts {
		prompt := &j.prompts[p]
		for range j.common.Choices() {
			c := &choice{index: len(choices), prompt: prompt}
			ask := j.ask
			ask.Prompt = prompt.ids
			ask.Sampling.Seed = derive(key, c.index)
			var err error
			if c.handle, err = s.model.Engine.Submit(ctx, &ask); err != nil {
				return nil, err
			}
			skip := j.common.SkipSpecialTokens == nil || *j.common.SkipSpecialTokens
			c.text = engine.NewTextStream(c.handle, s.model.Tokenizer.NewDetokenizer(skip), engine.TextOptions{
				Stop: j.common.Stop, IncludeStop: j.common.IncludeStop, MinTokens: j.common.MinTokens,
			})
			choices = append(choices, c)
		}
	}
	return choices, nil
}

// each calls f with the pieces of every choice as they come; those of one choice are in order, and calls do not overlap.
// It returns when all choices have ended, or with the first error, f's or a choice's.
func each(ctx context.Context, choices []*choice, f func(*choice, engine.Delta) error) error {
	if len(choices) == 1 {
		return choices[0].each(ctx, func(d engine.Delta) error { return f(choices[0], d) })
	}
	var mu sync.Mutex // one piece at a time; the others wait in their handles, whose buffers are bounded
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range choices {
		group.Go(func() error {
			return c.each(ctx, func(d engine.Delta) error {
				mu.Lock()
				defer mu.Unlock()
				return f(c, d)
			})
		})
	}
	return group.Wait()
}

// each calls f with every piece of the choice.
func (c *choice) each(ctx context.Context, f func(engine.Delta) error) error {
	for {
		d, err := c.text.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(d)
		}
		if err != nil {
			return err
		}
	}
}

// usage counts the tokens of a request: each prompt once, however many choices it has.
func usage(choices []*choice) openai.Usage {
	var u openai.Usage
	var last *prompt
	for _, c := range choices {
		u.CompletionTokens += c.tokens
		if c.prompt != last {
			u.PromptTokens += len(c.prompt.ids)
			u.CachedTokens += c.handle.CachedTokens()
			last = c.prompt
		}
	}
	return u
}
