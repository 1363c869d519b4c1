package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/quire-ai/quire/internal/openai"
)

// stream sends each piece as a server-sent event. The status line goes out with the first piece, so that what is refused
// before has a status of its own; what fails later is told in a frame.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	j       *job
	choices []*choice
	frames  *openai.Frames
	begun   bool
	waiting []pending // by index
	buf     []byte
}

// pending is what of a choice has not been sent yet.
type pending struct {
	begun  bool
	tokens int
	openai.Delta
}

func newStream(w http.ResponseWriter, j *job, choices []*choice) *stream {
	return &stream{
		w: w, control: http.NewResponseController(w), j: j, choices: choices,
		frames: openai.NewFrames(j.header), waiting: make([]pending, len(choices)),
	}
}

func (a *stream) usage() openai.Usage { return usage(a.choices) }

// add implements answer.
func (a *stream) add(c *choice, d openai.Delta) error {
	a.begin()
	p := &a.waiting[d.Index]
	a.buf = a.buf[:0]
	first := !p.begun
	if first {
		p.begun = true
		if a.j.header.Kind == openai.Chat { // the first frame of a message has its role alone
			a.frame(&openai.Delta{Index: d.Index, Role: "assistant", PromptTokenIDs: d.PromptTokenIDs}, 0)
			d.PromptTokenIDs = nil
		}
	}
	p.merge(d)
	if p.FinishReason != "" || p.tokens >= a.j.stream.interval || first {
		if p.shows() {
			a.frame(&p.Delta, a.usage().CompletionTokens)
		}
		p.Delta, p.tokens = openai.Delta{}, 0
	}
	return a.send()
}

// merge joins a piece to what waits.
func (p *pending) merge(d openai.Delta) {
	p.tokens++
	text := p.Text + d.Text
	logprobs, ids := append(p.Logprobs, d.Logprobs...), append(p.TokenIDs, d.TokenIDs...)
	promptIDs := p.PromptTokenIDs
	if d.PromptTokenIDs != nil {
		promptIDs = d.PromptTokenIDs
	}
	p.Delta = d
	p.Text, p.Logprobs, p.TokenIDs, p.PromptTokenIDs = text, logprobs, ids, promptIDs
}

// shows reports whether a frame would tell anything.
func (p *pending) shows() bool {
	return p.Text != "" || p.FinishReason != "" || len(p.Logprobs) > 0 || len(p.TokenIDs) > 0 || p.PromptTokenIDs != nil
}

// begin writes the status line and the header.
func (a *stream) begin() {
	if a.begun {
		return
	}
	a.begun = true
	h := a.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would hold frames back
	a.w.WriteHeader(http.StatusOK)
}

// frame adds a frame to the buffer; so many tokens have been generated up to it.
func (a *stream) frame(d *openai.Delta, generated int) {
	if !a.j.stream.continuous {
		a.buf = a.frames.AppendDelta(a.buf, d, nil)
		return
	}
	u := a.usage()
	u.CompletionTokens = generated
	a.buf = a.frames.AppendDelta(a.buf, d, &u)
}

// send writes the buffer. A client that does not read for writeTimeout is as good as gone.
func (a *stream) send() error {
	if len(a.buf) == 0 {
		return nil
	}
	_ = a.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not supported by test recorders, which always read
	if _, err := a.w.Write(a.buf); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	if err := a.control.Flush(); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// end implements answer.
func (a *stream) end(err error) error {
	if err != nil && !a.begun {
		return err
	}
	a.buf = a.buf[:0]
	switch {
	case err != nil:
		a.buf = openai.AppendErrorFrame(a.buf, apiError(err))
	case a.j.stream.usage:
		a.buf = a.frames.AppendUsage(a.buf, a.usage())
	}
	a.buf = append(a.buf, openai.Done...)
	_ = a.send() // the client has gone: nobody is left to tell
	return nil
}
