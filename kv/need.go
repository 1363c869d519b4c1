package kv

import "math"

// Demand says what a request wants slots for.
type Demand struct {
	Table    *Table
	Hit      *Hit // nil, or what Lookup found for a request that holds nothing yet
	Computed int  // tokens already computed, hits and external loads included
	Tokens   int  // tokens that need a slot, the computed ones included
	Whole    bool // count the whole sequence as admission does: a windowed group never holds more than its window
}

// Need returns how many blocks must come off the free queue to meet d: new ones, and hits that are free now.
func (c *Cache) Need(d Demand) int {
	total := 0
	for g := range c.cfg.Groups {
		total += c.needGroup(d, g)
	}
	return total
}

func (c *Cache) needGroup(d Demand, g int) int {
	required := c.cfg.blocksFor(d.Tokens)
	if d.Whole {
		required = min(required, c.cfg.windowCap(c.cfg.Groups[g]))
	}
	held := d.Table.Len(g)
	if held > 0 {
		return max(required-held, 0)
	}
	skipped := c.skippedBlocks(g, d.Computed)
	var hits []BlockID
	if d.Hit != nil {
		hits = d.Hit.blocks[g]
	}
	need := max(required-max(skipped, len(hits)), 0)
	for _, b := range hits[min(skipped, len(hits)):] {
		if b != nullBlock && c.pool.Refs(b) == 0 {
			need++
		}
	}
	return need
}

// blocksFor returns the number of blocks that hold the tokens.
func (c *Config) blocksFor(tokens int) int { return (tokens + c.BlockSize - 1) / c.BlockSize }

// windowCap returns the most blocks a request ever holds in the group at once.
func (c *Config) windowCap(g Group) int {
	if g.Window == 0 || c.MaxInFlight == 0 {
		return math.MaxInt
	}
	tokens := g.Window - 1 + c.MaxInFlight
	if c.MaxTokens > 0 {
		tokens = min(tokens, c.MaxTokens)
	}
	return c.blocksFor(tokens) + 1 // the window may begin within a block
}

// MostBlocks returns the most blocks that a sequence of up to so many tokens holds at once, over all groups: all its own in
// those that see everything, in the others what a window and the tokens in flight cover.
func (c *Config) MostBlocks(tokens int) int {
	if len(c.Groups) == 0 {
		return c.blocksFor(tokens)
	}
	most := 0
	for _, g := range c.Groups {
		most += min(c.blocksFor(tokens), c.windowCap(g))
	}
	return most
}

// skippedBlocks returns how many leading blocks of the group are not held once computed tokens are done.
func (c *Cache) skippedBlocks(g, computed int) int {
	return c.cfg.Groups[g].Skipped(computed, c.cfg.BlockSize)
}

// Skips tells whether a windowed group gives a block back between computed tokens from and to.
func (c *Cache) Skips(from, to int) bool {
	for g := range c.cfg.Groups {
		if c.skippedBlocks(g, from) < c.skippedBlocks(g, to) {
			return true
		}
	}
	return false
}

// FitsEmpty tells whether a sequence of so many tokens fits the pool when nothing else is in it.
func (c *Cache) FitsEmpty(tokens int) bool { return c.cfg.MostBlocks(tokens) <= c.pool.Usable() }
