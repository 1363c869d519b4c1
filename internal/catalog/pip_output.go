package catalog

import (
	"bytes"
	"strings"
	"sync"
)

// pipOutput keeps what pip prints, while it prints.
type pipOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends; pip's two streams come together here.
func (o *pipOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// lines returns the lines so far, without the space around them.
func (o *pipOutput) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(o.text.String()), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// answered tells whether pip has found the package somewhere: it says what it does with it.
func (o *pipOutput) answered() bool {
	for _, line := range o.lines() {
		for _, sign := range []string{"Downloading ", "Using cached ", "Processing ", "Saved ", "File was already downloaded "} {
			if strings.HasPrefix(line, sign) {
				return true
			}
		}
	}
	return false
}

// complaint returns why pip failed: its last error or, where it gives none, its last line or the error of its process.
// pip calls an index which it cannot reach a missing package, so that is added from its warnings.
func (o *pipOutput) complaint(exit error) string {
	text, unreachable := "", ""
	for _, line := range o.lines() {
		if after, ok := strings.CutPrefix(line, "ERROR: "); ok {
			text = after
		}
		if strings.HasPrefix(line, "WARNING: Retrying ") {
			unreachable = " (pip could not reach its index)"
		}
	}
	if text == "" {
		text = o.lines()[len(o.lines())-1]
	}
	if text == "" {
		text = exit.Error()
	}
	return text + unreachable
}
