package main

import (
	"io"
	"strings"
	"testing"

	"golang.org/x/term"
)

// TestInterruptClearsTheWholeLine: ^C within a line left what stood behind the cursor, and the next line began with it.
func TestInterruptClearsTheWholeLine(t *testing.T) {
	const left = "\x1b[D"
	edit := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&keys{Reader: strings.NewReader("wrong" + left + left + "\x03right\r")}, io.Discard}, "")
	if line, err := edit.ReadLine(); line != "right" || err != nil {
		t.Errorf("ReadLine() = %q %v, want right", line, err)
	}
}
