package kv

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
	required := c.blocksFor(d.Tokens)
	if d.Whole {
		required = min(required, c.windowCap(g))
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
func (c *Cache) blocksFor(tokens int) int { return (tokens + c.cfg.BlockSize - 1) / c.cfg.BlockSize }

// windowCap returns the most blocks a request ever holds in the group at once.
func (c *Cache) windowCap(g int) int {
	w := c.cfg.Groups[g].Window
	if w == 0 || c.cfg.MaxInFlight == 0 {
		return c.pool.Usable() + 1
	}
	tokens := w - 1 + c.cfg.MaxInFlight
	if c.cfg.MaxTokens > 0 {
		tokens = min(tokens, c.cfg.MaxTokens)
	}
	return c.blocksFor(tokens) + 1 // the window may begin within a block
}

// skippedBlocks returns how many leading blocks lie wholly left of the window once computed tokens are done.
func (c *Cache) skippedBlocks(g, computed int) int {
	w := c.cfg.Groups[g].Window
	if w == 0 {
		return 0
	}
	return max(0, computed-w+1) / c.cfg.BlockSize
}

// FitsEmpty tells whether a sequence of so many tokens fits the pool when nothing else is in it.
func (c *Cache) FitsEmpty(tokens int) bool {
	need := 0
	for g := range c.cfg.Groups {
		need += min(c.blocksFor(tokens), c.windowCap(g))
	}
	return need <= c.pool.Usable()
}
