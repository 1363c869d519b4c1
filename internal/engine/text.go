package engine

import (
	"context"
	"io"
	"unicode/utf8"

	"github.com/quire-ai/quire/sched"
)

// Detokenizer turns the token ids of one request into text, in order. Push returns complete characters only and keeps
// the bytes of an unfinished one; Flush returns what is left at the end, once. *tokenizer.Detokenizer is one.
type Detokenizer interface {
	Push(id int32) string
	Flush() string
}

// TextOptions says how a TextStream ends a text.
type TextOptions struct {
	// Stop ends the text before (IncludeStop: after) the first of these strings that is complete.
	Stop []string
	// IncludeStop keeps the stop string, and the text of a token that ended the request, in the text.
	IncludeStop bool
	// MinTokens is the number of tokens before whose end no stop string counts.
	MinTokens int
}

// Delta is a piece of a request's text.
type Delta struct {
	// Text may be empty: a character may need more tokens, and text that may be the beginning of a stop string waits.
	Text string
	// Token is the token that was read, nil when only the end was.
	Token *Token
	// Offset is where the token's own text begins, in characters from the start of the text, whether that was given out yet
	// or waits.
	Offset int
	// Finish is not nil in the last delta.
	Finish *Finish
}

// TextStream reads the tokens of a Handle as text. It is the only way from tokens to text: a streaming answer sends each
// delta, any other joins them, so both have the same text.
//
// The text is append-only: a character is given out when it is complete, and text whose end is a proper prefix of a stop
// string is held back until it is decided, no longer. Nothing after a stop string is given out, and the request is
// stopped in the engine. One caller at a time.
type TextStream struct {
	handle  *Handle
	detok   Detokenizer
	options TextOptions

	stops  stopMatcher
	held   []byte // not given out: its end may become a stop string
	tokens int
	chars  int // of all text so far, held or not
	done   bool
}

// NewTextStream returns the text of the tokens of h. The Detokenizer is used by this stream alone.
func NewTextStream(h *Handle, d Detokenizer, o TextOptions) *TextStream {
	return &TextStream{handle: h, detok: d, options: o, stops: newStopMatcher(o.Stop)}
}

// Next waits for a token and returns its delta, or io.EOF after the one with Finish. Any other error is the request's.
func (s *TextStream) Next(ctx context.Context) (Delta, error) {
	if s.done {
		return Delta{}, io.EOF
	}
	tok, finish, err := s.handle.read(ctx)
	if err != nil {
		return Delta{}, err
	}
	d := Delta{Token: tok, Offset: s.chars}
	text := ""
	if tok != nil {
		s.tokens++
		// The text of a token that ended the request by being what it is (EOS, a stop token) is not part of the answer.
		if ended := finish != nil && finish.Reason == sched.ReasonStop; !ended || s.options.IncludeStop {
			text = s.detok.Push(tok.ID)
		}
	}
	if finish != nil {
		text += s.detok.Flush()
	}
	if stop := s.push(text); stop != "" {
		return s.stopped(d, stop), nil
	}
	if finish != nil {
		s.done = true
		d.Text, d.Finish = s.release(0), finish
		return d, nil
	}
	d.Text = s.release(s.stops.partial())
	return d, nil
}

// push takes in text up to and including the first stop string, which it returns.
func (s *TextStream) push(text string) (stop string) {
	for i := range len(text) {
		if found := s.stops.push(text[i]); found != "" && s.tokens > s.options.MinTokens {
			stop, text = found, text[:i+1]
			break
		}
	}
	s.held = append(s.held, text...)
	s.chars += utf8.RuneCountInString(text)
	return stop
}

// release gives out all text but its last keep bytes.
func (s *TextStream) release(keep int) string {
	n := len(s.held) - keep
	text := string(s.held[:n])
	s.held = append(s.held[:0], s.held[n:]...)
	return text
}

// stopped ends the text at a stop string and the request in the engine.
func (s *TextStream) stopped(d Delta, stop string) Delta {
	s.done = true
	keep := len(stop)
	if s.options.IncludeStop {
		keep = 0
	}
	d.Text = s.release(keep)
	s.held = nil
	finish := s.handle.stopAt(stop, s.tokens)
	d.Finish = finish
	return d
}
