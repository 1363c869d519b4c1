package connector

import (
	"sync"
	"time"
)

// The breaker's numbers: failures in a row that open it, and how long it stays open, doubling each time.
const (
	breakAfter = 3
	minPause   = time.Second
	maxPause   = 30 * time.Second
)

// breaker sets a failing store aside for a while, so that requests do not wait for it again and again. Once the pause is
// over the store is tried; the first failure then opens the breaker again, for twice as long.
type breaker struct {
	mu       sync.Mutex // guards what follows
	failures int        // in a row
	until    time.Time  // while open
	pause    time.Duration
	opened   uint64 // times
}

// allows tells whether the store may be used.
func (b *breaker) allows(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !now.Before(b.until)
}

func (b *breaker) worked() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.pause = 0, 0
}

// failed takes note of a failure and tells whether it opened the breaker, and for how long.
func (b *breaker) failed(now time.Time) (opened bool, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	if b.failures < breakAfter || now.Before(b.until) {
		return false, 0
	}
	b.pause = min(max(2*b.pause, minPause), maxPause)
	b.until = now.Add(b.pause)
	b.opened++
	return true, b.pause
}
