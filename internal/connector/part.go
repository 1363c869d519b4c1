package connector

import (
	"github.com/quire-ai/quire/internal/connector/ram"
	"github.com/quire-ai/quire/kv"
)

// part is what a load reads in one piece: one block of the ram tier, or a chunk of a store.
type part struct {
	tier     *tier   // nil: the ram tier
	hash     kv.Hash // of the block, or of the chunk's last one
	from, to int     // blocks [from, to) of the request
	skip     int     // blocks of the chunk that lie before from

	slot  ram.Slot // pinned, of the ram tier
	bytes []byte   // of the slot
	ok    bool     // in the pool
}

// route appends the parts that bring the blocks [first, last) of a request, as far as they are held without a gap; each
// from the nearest tier.
func (c *Chain) route(dst []part, hashes []kv.Hash, first, last int) []part {
	for i := first; i < last; {
		p, ok := c.locate(hashes, i, last)
		if !ok {
			break
		}
		dst = append(dst, p)
		i = p.to
	}
	return dst
}

func (c *Chain) locate(hashes []kv.Hash, i, last int) (part, bool) {
	if c.ram != nil && c.ram.Has(&hashes[i]) {
		return part{hash: hashes[i], from: i, to: i + 1}, true
	}
	for _, t := range c.tiers {
		n := t.store.ChunkBlocks()
		end := (i/n + 1) * n
		if end <= len(hashes) && t.has(&hashes[end-1]) {
			return part{tier: t, hash: hashes[end-1], from: i, to: min(end, last), skip: i % n}, true
		}
	}
	return part{}, false
}

// worthwhile returns how many blocks of the parts to load: as many as save the most time over computing them. Until both
// speeds are known, all.
func (c *Chain) worthwhile(parts []part) int {
	if len(parts) == 0 {
		return 0
	}
	perBlock := c.prefill.perUnit() * float64(c.cfg.BlockSize)
	if perBlock == 0 {
		return parts[len(parts)-1].to - parts[0].from
	}
	best, bestSaved, saved := 0, 0.0, 0.0
	for i := range parts {
		p := &parts[i]
		saved += perBlock * float64(p.to-p.from)
		if p.tier == nil {
			saved -= c.copying.perUnit()
		} else {
			saved -= p.tier.readCost()
		}
		if saved > bestSaved {
			best, bestSaved = p.to-parts[0].from, saved
		}
	}
	return best
}
