package engine

import (
	"fmt"
	"log/slog"
	"time"
)

// report logs throughput at each interval in which there was work, also when no token moved: that is when the line is
// needed most. Without work it is parked.
func report(e *Engine) {
	var last Snapshot
	for {
		select {
		case <-e.busy:
		case <-e.done:
			return
		}
		if last = reportWhileBusy(e, last); !e.Live() {
			return
		}
	}
}

func reportWhileBusy(e *Engine, last Snapshot) Snapshot {
	ticker := time.NewTicker(e.cfg.LogInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-e.done:
			return last
		}
		now := e.Snapshot()
		if now.Live == 0 && now.ComputedTokens == last.ComputedTokens {
			return now
		}
		logInterval(e.cfg.Log, e.cfg.LogInterval, last, now)
		last = now
		if now.Live == 0 {
			return now
		}
	}
}

// logInterval writes the line that operators of other engines know. Preemptions in the interval are attributes of it: a line
// of their own would be one more that repeats for as long as the KV cache is too small.
func logInterval(log *slog.Logger, interval time.Duration, last, now Snapshot) {
	hits := 0.0
	if now.Prefix.Queried > 0 {
		hits = 100 * float64(now.Prefix.Hit) / float64(now.Prefix.Queried)
	}
	rate := float64(now.ComputedTokens-last.ComputedTokens) / interval.Seconds()
	var pressure []any
	if n := now.Preemptions - last.Preemptions; n > 0 {
		pressure = []any{
			slog.Uint64("preemptions", n), slog.Uint64("preemptions_total", now.Preemptions),
			slog.Uint64("recomputed_tokens", now.RecomputedTokens-last.RecomputedTokens),
		}
	}
	log.Info(fmt.Sprintf("Throughput (T/s) %.2f, Prefix cache hitrate %.2f%%, %d running, %d waiting",
		rate, hits, now.Running, now.Waiting), pressure...)
}
