package connector

import (
	"github.com/quire-ai/quire/sched"
)

// countMissed counts, once in a request's life, the blocks that each tier was asked for and does not hold: those that a
// farther tier has, and those behind the reach of all. parts is what Match found of the blocks up to last, from first on.
func (c *Chain) countMissed(id sched.RequestID, parts []part, first, last int) {
	if c.counted[id] {
		return
	}
	c.counted[id] = true
	reach := first
	for i := range parts {
		p := &parts[i]
		reach = p.to
		if p.tier == nil {
			continue
		}
		n := uint64(p.to - p.from)
		c.missed.Add(n)
		for _, nearer := range p.tier.nearer {
			nearer.missed.Add(n)
		}
	}
	n := uint64(last - reach)
	c.missed.Add(n)
	for _, t := range c.tiers {
		t.missed.Add(n)
	}
}
