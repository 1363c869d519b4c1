package connector

import (
	"sync"
	"time"
)

// counter counts transfers.
type counter struct {
	mu     sync.Mutex
	blocks uint64
	bytes  uint64
	time   time.Duration
}

func (c *counter) add(blocks, bytes int, d time.Duration) {
	c.mu.Lock()
	c.blocks += uint64(blocks)
	c.bytes += uint64(bytes)
	c.time += d
	c.mu.Unlock()
}

func (c *counter) read() Transfers {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Transfers{Blocks: c.blocks, Bytes: c.bytes, Time: c.time}
}

// Transfers counts what went one way.
type Transfers struct {
	Blocks, Bytes uint64
	Time          time.Duration // summed over transfers, which may overlap
}

// TierStats is the state of a tier and its counters.
type TierStats struct {
	Name string
	Usage
	Loaded, Stored Transfers
	Missed         uint64            // blocks that requests asked it for, once each, and that it does not hold
	Dropped        uint64            // chunks not stored because the buffers were full
	Refused        uint64            // chunks not stored because the breaker was open
	Failures       map[string]uint64 // by cause
	Open           bool              // the breaker keeps the tier out
	Queued         int               // chunks on their way out
}

// Stats returns the state of each tier, nearest first. It may be called by any goroutine.
func (c *Chain) Stats() []TierStats {
	var all []TierStats
	if c.ram != nil {
		r := c.ram.Stats()
		all = append(all, TierStats{
			Name: "ram", Loaded: c.hits.read(), Missed: c.missed.Load(),
			Stored: Transfers{Blocks: r.Stored, Bytes: r.Stored * uint64(r.BlockBytes)},
			Usage: Usage{
				Blocks: r.Blocks, Bytes: int64(r.Blocks) * int64(r.BlockBytes), Capacity: int64(r.Capacity) * int64(r.BlockBytes),
				Evicted: r.Evicted,
			},
		})
	}
	for _, t := range c.tiers {
		all = append(all, t.stats())
	}
	return all
}

func (t *tier) stats() TierStats {
	st := TierStats{
		Name: t.store.Name(), Usage: t.store.Usage(), Loaded: t.hits.read(), Stored: t.stored.read(), Missed: t.missed.Load(),
		Failures: map[string]uint64{}, Open: !t.breaker.allows(time.Now()),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	st.Dropped, st.Refused, st.Queued = t.dropped, t.refused, len(t.pending)
	for c := range causes {
		st.Failures[c.String()] = t.failures[c]
	}
	return st
}
