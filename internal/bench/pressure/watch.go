package pressure

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/sched"
)

// recorder watches an engine: what arrived, what was decided, and how each request ended. Its observer is called by the
// engine's loop, its other methods by the test.
type recorder struct {
	mu       sync.Mutex
	idle     int // steps that ended without a token computed
	preempts int
	arrivals []string // the engine's ids
	finished []engine.FinishInfo
	loaded   map[string]bool // ids of requests that waited for KV from a tier
}

// observer returns what the engine is given; each call is passed on to next.
func (r *recorder) observer(next engine.Observer) engine.Observer {
	o := next
	o.Change = func(c sched.Change) {
		r.change(c)
		if next.Change != nil {
			next.Change(c)
		}
	}
	o.Step = func(info engine.StepInfo) {
		if info.Tokens == 0 {
			r.mu.Lock()
			r.idle++
			r.mu.Unlock()
		}
		if next.Step != nil {
			next.Step(info)
		}
	}
	o.Finished = func(info engine.FinishInfo) {
		r.mu.Lock()
		r.finished = append(r.finished, info)
		r.mu.Unlock()
		if next.Finished != nil {
			next.Finished(info)
		}
	}
	return o
}

func (r *recorder) change(c sched.Change) {
	if c.Kind != sched.Moved {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.From == sched.StateNew {
		r.arrivals = append(r.arrivals, string(c.ID))
	}
	if c.From == sched.Running && c.To == sched.Preempted {
		r.preempts++
	}
	if c.To == sched.WaitingForRemoteKVs {
		r.loaded[string(c.ID)] = true
	}
}

// waitedForLoad says whether a request waited for KV from a tier.
func (r *recorder) waitedForLoad(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.loaded[id]
}

// tally is what the recorder has counted so far.
type tally struct{ idle, preempts, arrivals, finished int }

func (r *recorder) tally() tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return tally{r.idle, r.preempts, len(r.arrivals), len(r.finished)}
}

// since returns the arrivals and ends after a tally.
func (r *recorder) since(t tally) ([]string, []engine.FinishInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arrivals[t.arrivals:], r.finished[t.finished:]
}

// logBook keeps the lines that a server logs.
type logBook struct {
	mu    sync.Mutex
	lines map[string]int // text with its facts → how often
	order []string
	sums  map[string]int // of the numbers in the lines, by their key
}

func newLogBook() *logBook { return &logBook{lines: map[string]int{}, sums: map[string]int{}} }

// Enabled implements slog.Handler: what an operator sees by default.
func (b *logBook) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (b *logBook) Handle(_ context.Context, r slog.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var line strings.Builder
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		line.WriteString(" " + a.String())
		switch a.Value.Kind() {
		case slog.KindUint64:
			b.sums[a.Key] += int(a.Value.Uint64())
		case slog.KindInt64:
			b.sums[a.Key] += int(a.Value.Int64())
		}
		return true
	})
	b.lines[line.String()]++
	b.order = append(b.order, line.String())
	return nil
}

// WithAttrs implements slog.Handler; attributes of the whole log do not tell its lines apart.
func (b *logBook) WithAttrs([]slog.Attr) slog.Handler { return b }

// WithGroup implements slog.Handler.
func (b *logBook) WithGroup(string) slog.Handler { return b }

// sum adds up the numbers that the log has under a key.
func (b *logBook) sum(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sums[key]
}

// length is the number of lines so far.
func (b *logBook) length() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.order)
}

// since returns the lines after the first n.
func (b *logBook) since(n int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.order[n:]
}

// repeated returns a line that was logged more than most times, if there is one. The throughput line does not count: it is
// there to come again.
func (b *logBook) repeated(most int) (string, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line, n := range b.lines {
		if n > most && !strings.HasPrefix(line, throughputLine) {
			return line, n
		}
	}
	return "", 0
}
