package kv

// Register enters the table's full blocks over the first tokens into the prefix cache.
func (c *Cache) Register(t *Table, chain *Chain, tokens []int32) {
	if !c.cfg.Caching {
		return
	}
	full := len(tokens) / c.cfg.BlockSize
	for g := range t.groups {
		gt := &t.groups[g]
		if gt.registered >= full {
			continue
		}
		adapter := c.adapter(chain.LoRA)
		for i := gt.registered; i < full; i++ {
			if b := gt.blocks[i]; b != nullBlock {
				c.pool.Register(b, &chain.Hashes[i], g, adapter)
			}
		}
		if c.cfg.Events {
			c.stored(g, chain, gt.blocks, gt.registered, full, tokens)
		}
		gt.registered = full
	}
}

// Unregister takes the table's blocks from index first on out of the prefix cache: their content was never computed or
// is not to be trusted. They stay in the table.
func (c *Cache) Unregister(t *Table, first int) {
	for g := range t.groups {
		gt := &t.groups[g]
		for i := first; i < gt.registered; i++ {
			c.Forget(gt.blocks[i])
		}
		gt.registered = min(gt.registered, first)
	}
}

// ForgetUnshared takes the table's blocks from index first on out of the prefix cache, unless another table holds them too,
// and tells whether there were any.
func (c *Cache) ForgetUnshared(t *Table, first int) bool {
	any := false
	for g := range t.groups {
		gt := &t.groups[g]
		for i := first; i < gt.registered; i++ {
			if b := gt.blocks[i]; b != nullBlock && c.pool.Refs(b) == 1 {
				c.Forget(b)
			}
			any = any || gt.blocks[i] != nullBlock
		}
	}
	return any
}

// Taint marks the table's registered blocks from index first on as bad: their holder computes them again. Until Clean they
// are not hit.
func (c *Cache) Taint(t *Table, first int) {
	for g := range t.groups {
		gt := &t.groups[g]
		for i := first; i < gt.registered; i++ {
			c.pool.Taint(gt.blocks[i])
		}
	}
}

// Clean takes the mark off the table's blocks with index first to end−1: they are being computed.
func (c *Cache) Clean(t *Table, first, end int) {
	for g := range t.groups {
		gt := &t.groups[g]
		for i := first; i < min(end, gt.registered); i++ {
			c.pool.Clean(gt.blocks[i])
		}
	}
}

// Forget takes one block out of the prefix cache.
func (c *Cache) Forget(b BlockID) {
	if _, ok := c.pool.Hash(b); !ok {
		return
	}
	if c.cfg.Events {
		c.dropped(b)
	}
	c.pool.Unregister(b)
}
