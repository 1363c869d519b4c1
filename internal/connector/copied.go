package connector

import (
	"time"

	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// copied is a load whose blocks all lie in the ram tier. The loop copies them before the step runs that needs them, in less
// time than a step takes, so the request starts at once: one that waited would be overtaken by younger ones.
type copied struct {
	blocks []kv.BlockID
	parts  []part
}

// pin keeps the sources of a load from being overwritten by what the same plan evicts. They are all there: since Match said
// so, nobody has put a block into the tier.
func (c *Chain) pin(ld *sched.Load) copied {
	spans, blocks := c.promised(ld)
	l := copied{blocks: blocks, parts: c.route(nil, ld.Hashes, spans)}
	invariant.Check(len(l.parts) == len(l.blocks), "ram tier holds %d of the %d blocks it promised to %s", len(l.parts), len(l.blocks), ld.ID)
	for i := range l.parts {
		p := &l.parts[i]
		var ok bool
		p.slot, p.bytes, ok = c.ram.Pin(&p.hash, p.group)
		invariant.Check(ok && p.tier == nil, "ram tier holds block %d of %s", p.from, ld.ID)
	}
	return l
}

// bring copies the blocks into the pool.
func (c *Chain) bring(l *copied) {
	for i := range l.parts {
		p := &l.parts[i]
		start := time.Now()
		copy(c.cfg.Memory.Block(int32(l.blocks[i])), p.bytes)
		took := time.Since(start)
		c.copying.add(1, took)
		c.hits.add(1, c.cfg.Format.BlockBytes, took)
		c.ram.Unpin(p.slot)
	}
}
