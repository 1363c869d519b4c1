package connector

import (
	"testing"
	"time"

	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/kv"
)

// TestWorthwhile: as much is loaded as saves time; before the speeds are known, all.
func TestWorthwhile(t *testing.T) {
	parts := func(far *tier) []part { // 4 blocks from memory, then 8 from a store
		var all []part
		for i := range 4 {
			all = append(all, part{from: i, to: i + 1})
		}
		return append(all, part{tier: far, from: 4, to: 8}, part{tier: far, from: 8, to: 12})
	}
	for _, c := range []struct {
		name              string
		perToken          time.Duration // of computing
		perBlock, reading time.Duration // of the ram tier, of a chunk
		want              int
	}{
		{"nothing measured", 0, 0, 0, 12},
		{"all cheap", time.Millisecond, time.Microsecond, time.Millisecond, 12},
		{"the store is slower than computing", time.Microsecond, time.Microsecond, time.Second, 4},
		{"everything is", time.Nanosecond, time.Second, time.Second, 0},
	} {
		chain := &Chain{cfg: Config{BlockSize: 16, Format: chunk.Format{Blocks: 1}, Groups: []kv.Group{{}}}}
		far := &tier{}
		chain.prefill.add(1, c.perToken)
		chain.copying.add(1, c.perBlock)
		far.reading.add(1, c.reading)
		if got := chain.worthwhile(parts(far), 12); got != c.want {
			t.Errorf("%s: %d blocks are worth loading, want %d", c.name, got, c.want)
		}
	}
}

// TestBreakerDoubles: each failure after a pause opens the breaker for twice as long, up to a bound; a success resets it.
func TestBreakerDoubles(t *testing.T) {
	var b breaker
	now := time.Unix(1000, 0)
	want := []time.Duration{0, 0, 1, 2, 4, 8, 16, 30, 30}
	for i, w := range want {
		opened, pause := b.failed(now)
		if opened != (w > 0) || pause != w*time.Second {
			t.Fatalf("failure %d: opened %t for %v, want %v", i+1, opened, pause, w*time.Second)
		}
		if b.allows(now) != !opened {
			t.Fatalf("failure %d: allows %t", i+1, b.allows(now))
		}
		now = now.Add(pause)
	}
	b.worked()
	if opened, _ := b.failed(now); opened || !b.allows(now) {
		t.Error("one failure after a success opens the breaker")
	}
}
