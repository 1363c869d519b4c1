package connector

import (
	"github.com/quire-ai/quire/sched"
)

// countMissed counts, once in a request's life, the blocks that each tier was asked for and does not hold: those that a
// farther tier has, and, in each cache group, those behind the reach of all. parts is what brings the blocks up to reach; last
// is where it would best have been.
func (c *Chain) countMissed(id sched.RequestID, parts []part, reach, last int) {
	if c.counted[id] {
		return
	}
	c.counted[id] = true
	for i := range parts {
		p := &parts[i]
		if p.tier == nil {
			continue
		}
		n := uint64(p.to - p.from)
		c.missed.Add(n)
		for _, nearer := range p.tier.nearer {
			nearer.missed.Add(n)
		}
	}
	n := uint64((last - reach) * len(c.cfg.Groups))
	c.missed.Add(n)
	for _, t := range c.tiers {
		t.missed.Add(n)
	}
}
