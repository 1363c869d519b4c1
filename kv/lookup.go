package kv

// Hit is the result of a lookup: Tokens leading tokens are cached. It is valid until the next lookup.
type Hit struct {
	Tokens  int
	Tainted bool        // it ends before a block whose content is bad and will be computed again
	blocks  [][]BlockID // [group], null blocks where the window does not reach
}

// Lookup finds the longest run of leading blocks, over at most maxTokens tokens, that every group holds. Its cost is
// linear in the run; it changes nothing, so it may be repeated.
func (c *Cache) Lookup(chain *Chain, maxTokens int) *Hit {
	h := &c.hit
	h.Tokens, h.Tainted = 0, false
	for g := range h.blocks {
		h.blocks[g] = h.blocks[g][:0]
	}
	if !c.cfg.Caching {
		return h
	}
	adapter := c.adapter(chain.LoRA)
	// A group may shorten the run, which may then end where another group's window is not covered: ask around until
	// nobody shortens it.
	blocks := min(maxTokens/c.cfg.BlockSize, len(chain.Hashes))
	for changed := true; changed; {
		changed = false
		for g := range c.cfg.Groups {
			n := c.lookupGroup(chain.Hashes[:blocks], g, adapter)
			if n < blocks {
				blocks, changed = n, len(c.cfg.Groups) > 1
			}
		}
	}
	if c.cfg.DropLast && blocks > 0 {
		blocks--
		for g := range h.blocks {
			h.blocks[g] = h.blocks[g][:blocks]
		}
	}
	h.Tokens = blocks * c.cfg.BlockSize
	return h
}

// lookupGroup fills the group's hit with the longest run it can serve within hashes and returns its length.
func (c *Cache) lookupGroup(hashes []Hash, g int, adapter int32) int {
	out := c.hit.blocks[g][:0]
	defer func() { c.hit.blocks[g] = out }()
	if c.cfg.Groups[g].Window == 0 {
		for i := range hashes {
			b, ok := c.pool.Lookup(&hashes[i], g, adapter)
			if !ok {
				break
			}
			if c.pool.Tainted(b) {
				c.hit.Tainted = true
				break
			}
			out = append(out, b)
		}
		return len(out)
	}
	// Only the window's blocks at the end of the run must be there. Search from the right.
	need := (c.cfg.Groups[g].Window - 1 + c.cfg.BlockSize - 1) / c.cfg.BlockSize
	if c.cfg.DropLast {
		need++
	}
	for range hashes {
		out = append(out, nullBlock)
	}
	run := 0
	for i := len(hashes) - 1; i >= 0; i-- {
		b, ok := c.pool.Lookup(&hashes[i], g, adapter)
		if !ok || c.pool.Tainted(b) {
			run = 0
			continue
		}
		out[i] = b
		if run++; run >= need {
			out = out[:i+run]
			return len(out)
		}
	}
	out = out[:run]
	return run
}

// adapter returns the number that stands for the adapter in keys.
func (c *Cache) adapter(name string) int32 {
	if name == "" {
		return 0
	}
	n, ok := c.adapters[name]
	if !ok {
		n = int32(len(c.adapters)) + 1
		c.adapters[name] = n
	}
	return n
}
