package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// terminal reads lines with editing and a history. The terminal is in raw mode only while a line is typed, so that ^C is
// a signal while the model answers.
type terminal struct {
	file *os.File
	edit *term.Terminal
}

// newTerminal is a terminal over the console, whose input must be one.
func newTerminal(c *console) *terminal {
	file := c.In.(*os.File)
	edit := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&keys{Reader: file}, c.Out}, ">>> ")
	return &terminal{file: file, edit: edit}
}

// ReadLine returns the next line; lines that were pasted together are one.
func (t *terminal) ReadLine() (string, error) {
	state, err := term.MakeRaw(int(t.file.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(t.file.Fd()), state)
	if width, height, err := term.GetSize(int(t.file.Fd())); err == nil {
		_ = t.edit.SetSize(width, height) // it only wraps lines worse
	}
	t.edit.SetBracketedPasteMode(true)
	defer t.edit.SetBracketedPasteMode(false)
	var text []string
	for {
		line, err := t.edit.ReadLine()
		text = append(text, line)
		if !errors.Is(err, term.ErrPasteIndicator) {
			return strings.Join(text, "\n"), err
		}
	}
}

// keys turns ^C, at which package term would end the input, into ^E ^U: to the end of the line, and clear what is before it.
type keys struct {
	io.Reader
	rest []byte // read, and not yet given out
}

func (k *keys) Read(p []byte) (int, error) {
	var err error
	if len(k.rest) == 0 {
		var n int
		n, err = k.Reader.Read(p)
		k.rest = bytes.ReplaceAll(p[:n], []byte{3}, []byte{5, 21})
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, err
}
