package engine_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
)

// inference-sim #297, #529, #963: victims lose all progress and are preempted and queued again for ever, with tens of
// megabytes of log. Here the work is bounded, and the log has one line for each interval, whatever is preempted.
func TestNoThrashNoLogStorm297(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &recorder{}
		e, _ := newEngine(shape{
			blocks: 24, toy: executortest.Options{Step: stepTime(20 * time.Millisecond)},
			config: func(c *engine.Config) { c.LogInterval, c.Log = 10*time.Second, slog.New(log) },
		})
		defer e.Close()
		start := time.Now()
		for i, got := range serveAll(t.Context(), e, each(40, func(i int) *engine.Request { return greedy(prompt(i, 256), 128) })) {
			if len(got.tokens) != 128 || got.finish.Preemptions > 6 {
				t.Errorf("request %d: %d tokens, %d preemptions, %v; want 128, at most 6", i, len(got.tokens), got.finish.Preemptions, got.err)
			}
		}
		// One request needs all 24 blocks at its end, so they run nearly one after the other.
		s := e.Snapshot()
		if most := uint64(40 * 129 * 5 / 4); s.Step > most {
			t.Errorf("%d steps; want at most %d", s.Step, most)
		}
		if most := uint64(40 * 384 / 2); s.RecomputedTokens > most {
			t.Errorf("%d tokens computed again; want at most %d", s.RecomputedTokens, most)
		}
		intervals := int(time.Since(start)/(10*time.Second)) + 1
		lines := log.all()
		for _, line := range lines {
			if !strings.HasPrefix(line, "Throughput ") {
				t.Errorf("logged under pressure: %s", line)
			}
		}
		if len(lines) == 0 || len(lines) > intervals {
			t.Errorf("%d lines in %d intervals; want one each", len(lines), intervals)
		}
		drained(t, e)
	})
}
