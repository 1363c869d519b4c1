package main

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// pullReporter shows a pull to a person. It must be closed before anything else is written to the same stream.
type pullReporter interface {
	Note(text string)
	Progress(done, total int64)
	Close()
}

// newPullReporter returns a reporter that draws a bar when w is a terminal, and prints a few lines otherwise.
func newPullReporter(w io.Writer) pullReporter {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &barReporter{container: mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))}
	}
	return &lineReporter{w: w}
}

// lineReporter prints notes, and a line whenever another tenth of the file has arrived for the first time.
type lineReporter struct {
	mu     sync.Mutex
	w      io.Writer
	tenths int64 // printed last
}

func (r *lineReporter) Note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.w, text)
}

func (r *lineReporter) Progress(done, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if total <= 0 {
		return
	}
	if tenths := 10 * done / total; tenths > r.tenths {
		fmt.Fprintf(r.w, "%s of %s (%d%%)\n", formatBytes(done), formatBytes(total), 10*tenths)
		r.tenths = tenths
	}
}

// Close has nothing to end.
func (r *lineReporter) Close() {}

// barReporter draws one bar, with notes above it.
type barReporter struct {
	mu        sync.Mutex
	container *mpb.Progress
	bar       *mpb.Bar // nil until something arrives
}

func (r *barReporter) Note(text string) {
	fmt.Fprintln(r.container, text)
}

func (r *barReporter) Progress(done, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bar == nil {
		r.bar = r.container.AddBar(total,
			mpb.PrependDecorators(decor.CountersKiloByte("% .1f of % .1f")),
			mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1000(0), "% .1f"), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO)),
		)
	}
	r.bar.SetTotal(total, false)
	r.bar.SetCurrent(done)
}

// Close takes the bar away and waits until the terminal is quiet.
func (r *barReporter) Close() {
	r.mu.Lock()
	if r.bar != nil {
		r.bar.Abort(true)
	}
	r.mu.Unlock()
	r.container.Wait()
}

// formatBytes gives a size in the units that disks and downloads are sold in.
func formatBytes(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
