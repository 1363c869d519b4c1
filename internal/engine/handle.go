package engine

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/sched"
)

// Finish is how a request ended and what it used.
type Finish struct {
	Reason sched.Reason
	// StopToken is the id that ended the request if it is one of StopTokenIDs; nil for EOS and everything else.
	StopToken *int32
	// StopString is the stop string that ended the text, if one did.
	StopString string

	PromptTokens int
	CachedTokens int // of the prompt, found in the prefix cache or brought from a tier behind it
	LoadedTokens int // of these, brought from a tier
	OutputTokens int // the one that ended the request included
	Preemptions  int
}

// Handle is a request in the engine. The loop puts tokens in and never waits for them to be read: the buffer holds at most
// the request's MaxTokens. One goroutine reads; Abort may be called by any.
type Handle struct {
	engine *Engine
	id     sched.RequestID
	client string
	req    *sched.Request
	params *sample.Params

	promptTokens int

	run progress // owned by the loop

	queued   bool // it has a place in engine.queued; guarded by engine.mu, as the next two
	aborting bool // its client gave up
	received bool // the loop took it in before that

	mu     sync.Mutex // guards what follows
	tokens []Token    // [head:] are not read yet
	head   int
	prompt []Token // log probabilities of prompt tokens
	cached int
	loaded int
	finish *Finish
	err    error
	stop   string // the stop string that ended the text

	ready  chan struct{} // capacity 1; filled when there is something new to read
	detach func() bool   // stops watching the context of Submit
}

func newHandle(e *Engine, client string, req *sched.Request, params *sample.Params) *Handle {
	return &Handle{
		engine: e, id: req.ID, client: client, req: req, params: params, promptTokens: len(req.Prompt), ready: make(chan struct{}, 1),
	}
}

// ID returns the engine's own name of the request, unique in its life.
func (h *Handle) ID() string { return string(h.id) }

// Next waits for the next token. It returns io.EOF after the last, and then Finish is valid; any other error is the
// request's own, or ctx's: a reader that gives up should Abort.
func (h *Handle) Next(ctx context.Context) (Token, error) {
	tok, _, err := h.read(ctx)
	if err != nil {
		return Token{}, err
	}
	if tok == nil {
		return Token{}, io.EOF
	}
	return *tok, nil
}

// All yields the tokens, and then the request's error if it has one. Leaving the loop early aborts the request.
func (h *Handle) All(ctx context.Context) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		for {
			tok, err := h.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(tok, err) || err != nil {
				h.Abort()
				return
			}
		}
	}
}

// read waits for a token, the end, or both: finish is not nil together with the last token, if the two came at once.
func (h *Handle) read(ctx context.Context) (*Token, *Finish, error) {
	for {
		tok, finish, err := h.poll()
		if tok != nil || finish != nil || err != nil {
			return tok, finish, err
		}
		select {
		case <-h.ready:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// poll takes what is there: all nil if nothing is.
func (h *Handle) poll() (*Token, *Finish, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var tok *Token
	if h.head < len(h.tokens) {
		tok = new(h.tokens[h.head])
		h.tokens[h.head] = Token{}
		if h.head++; h.head == len(h.tokens) {
			h.tokens, h.head = h.tokens[:0], 0
		}
	}
	if h.head < len(h.tokens) {
		return tok, nil, nil
	}
	if h.err != nil && tok != nil {
		return tok, nil, nil // the error comes after the last token, not in its place
	}
	if h.err != nil {
		return nil, nil, h.err
	}
	return tok, h.finish, nil
}

// Finish returns how the request ended. It is valid after Next returned io.EOF.
func (h *Handle) Finish() Finish {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.finish == nil {
		return Finish{}
	}
	return *h.finish
}

// PromptLogprobs returns the log probabilities of the prompt's tokens from the second on, if they were asked for. They are
// complete when the first token is there.
func (h *Handle) PromptLogprobs() []Token {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.prompt
}

// CachedTokens returns how many tokens of the prompt came from the prefix cache or a tier behind it, 0 before the request ran.
func (h *Handle) CachedTokens() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cached
}

func (h *Handle) loadedTokens() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.loaded
}

// watch aborts the request when ctx ends. Called once, by Submit; the request may have ended already.
func (h *Handle) watch(ctx context.Context) {
	detach := context.AfterFunc(ctx, h.Abort)
	h.mu.Lock()
	h.detach = detach
	ended := h.finish != nil
	h.mu.Unlock()
	if ended {
		detach()
	}
}

// Abort ends the request, wherever it is: the engine sees it before its next step. It does not wait, and does nothing to a
// request that has ended.
func (h *Handle) Abort() { h.engine.abort(h) }

// stopAt ends the request because its text, of the first n output tokens, is complete.
func (h *Handle) stopAt(stop string, n int) *Finish {
	h.mu.Lock()
	h.stop = stop
	f := Finish{
		Reason: sched.ReasonStop, StopString: stop,
		PromptTokens: h.promptTokens, CachedTokens: h.cached, LoadedTokens: h.loaded, OutputTokens: n,
	}
	h.mu.Unlock()
	h.Abort()
	return &f
}

// deliver hands over what a step gave, in one piece: a reader sees the last token and the end together. Called by the loop.
func (h *Handle) deliver(tokens []Token, finish *Finish, err error) {
	h.mu.Lock()
	h.tokens = append(h.tokens, tokens...)
	if finish != nil && h.stop != "" {
		finish.Reason, finish.StopString = sched.ReasonStop, h.stop
	}
	h.finish, h.err = finish, err
	detach := h.detach
	h.mu.Unlock()
	if finish != nil && detach != nil {
		detach()
	}
	select {
	case h.ready <- struct{}{}:
	default:
	}
}
