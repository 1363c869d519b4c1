package connector

import (
	"github.com/quire-ai/quire/internal/connector/ram"
	"github.com/quire-ai/quire/kv"
)

// part is what a load reads in one piece: one block of the ram tier, or a chunk of a store.
type part struct {
	tier     *tier   // nil: the ram tier
	hash     kv.Hash // of the block, or the chunk's key
	group    int     // cache group
	from, to int     // blocks [from, to) of the request in that group
	at       int     // of from, among all the blocks that the load brings
	skip     int     // blocks of the chunk that lie before from

	slot  ram.Slot // pinned, of the ram tier
	bytes []byte   // of the slot
	ok    bool     // in the pool
}

// route appends the parts that bring the blocks of the spans, in their order, as far as they are held without a gap; each from
// the nearest tier.
func (c *Chain) route(dst []part, hashes []kv.Hash, spans []span) []part {
	at := 0
	for _, s := range spans {
		for i := s.from; i < s.to; {
			p, ok := c.locate(hashes, s.group, i, s.to)
			if !ok {
				return dst
			}
			p.at = at
			at += p.to - p.from
			dst = append(dst, p)
			i = p.to
		}
	}
	return dst
}

func (c *Chain) locate(hashes []kv.Hash, group, i, last int) (part, bool) {
	if c.ram != nil && c.ram.Has(&hashes[i], group) {
		return part{hash: hashes[i], group: group, from: i, to: i + 1}, true
	}
	for _, t := range c.tiers {
		n := t.store.ChunkBlocks()
		end := (i/n + 1) * n
		if end > len(hashes) {
			continue
		}
		if k := key(&hashes[end-1], group); t.has(&k) {
			return part{tier: t, hash: k, group: group, from: i, to: min(end, last), skip: i % n}, true
		}
	}
	return part{}, false
}

// worthwhile returns how many of the blocks that the parts bring to load: as many as save the most time over computing them;
// all or none where windows make a part of them useless. Until both speeds are known, all.
func (c *Chain) worthwhile(parts []part, blocks int) int {
	perBlock := c.prefill.perUnit() * float64(c.cfg.BlockSize)
	if perBlock == 0 {
		return blocks
	}
	best, bestSaved, cost := 0, 0.0, 0.0
	for i := range parts {
		p := &parts[i]
		if p.tier == nil {
			cost += c.copying.perUnit()
		} else {
			cost += p.tier.readCost()
		}
		n := p.to - parts[0].from
		if i == len(parts)-1 {
			n = blocks
		} else if !c.whole() {
			continue
		}
		if saved := perBlock*float64(n) - cost; saved > bestSaved {
			best, bestSaved = n, saved
		}
	}
	return best
}
