package connector

import (
	"context"
	"time"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// asking is where the question stands what stores have for a request. It is asked once in the request's life.
type asking uint8

const (
	notAsked asking = iota
	underWay
	answered
)

// findJob is a question to a store.
type findJob struct {
	hashes []kv.Hash
	done   func()
}

// ask has the stores that must be asked look for the blocks from first on without which no more than reach can be loaded, and
// tells whether to wait for the answer. A store that is set aside is not asked.
func (c *Chain) ask(id sched.RequestID, hashes []kv.Hash, first, reach, last int) (wait bool) {
	if reach >= last {
		return false
	}
	c.mu.Lock()
	state := c.asked[id]
	c.mu.Unlock()
	if state != notAsked {
		return state == underWay
	}
	for _, t := range c.tiers { // one at most: stores that are shared stand last
		if _, ok := t.store.(Finder); !ok || !t.breaker.allows(time.Now()) {
			continue
		}
		var chunks []kv.Hash
		n := t.store.ChunkBlocks()
		for g, group := range c.cfg.Groups {
			from := reach
			if group.Window > 0 { // a window behind the reach begins before it
				from = max(first, group.Skipped(reach*c.cfg.BlockSize, c.cfg.BlockSize))
			}
			for end := (from/n + 1) * n; end <= len(hashes) && end-n < last; end += n {
				chunks = append(chunks, key(&hashes[end-1], g))
			}
		}
		if len(chunks) == 0 {
			continue
		}
		c.mu.Lock()
		c.asked[id] = underWay
		c.mu.Unlock()
		t.finds.put(findJob{hashes: chunks, done: func() { c.answered(id) }})
		return true
	}
	return false
}

// answered notes that a question was answered, or will not be.
func (c *Chain) answered(id sched.RequestID) {
	c.mu.Lock()
	if c.asked[id] == underWay {
		c.asked[id] = answered
	}
	c.mu.Unlock()
	c.wake()
}

func (t *tier) findAll(ctx context.Context, f Finder) {
	for {
		job, ok := t.finds.take()
		if !ok {
			return
		}
		if ctx.Err() == nil && t.breaker.allows(time.Now()) {
			if err := f.Find(ctx, job.hashes); err == nil {
				t.breaker.worked()
			} else if ctx.Err() == nil {
				t.failed(causeFind, err)
			}
		}
		job.done()
	}
}
