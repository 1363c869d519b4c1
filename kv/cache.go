package kv

import (
	"slices"

	"github.com/quire-ai/quire/internal/invariant"
)

// Group describes layers that share one block table. Every group takes its blocks from the one pool.
type Group struct {
	// Window is the number of tokens, itself included, that a token of these layers attends to; 0 means all. Blocks
	// wholly left of the window are given back.
	Window int
}

// Skipped returns how many leading blocks lie wholly left of the window of the token behind the first tokens.
func (g Group) Skipped(tokens, blockSize int) int {
	if g.Window == 0 {
		return 0
	}
	return max(0, tokens-g.Window+1) / blockSize
}

// Config is the shape of a Cache.
type Config struct {
	Blocks      int     // blocks in the pool, including the null block
	BlockSize   int     // tokens a block
	Caching     bool    // register full blocks and look prefixes up
	DropLast    bool    // a prefix hit gives up its last block (a drafter with its own KV needs that block's hidden states)
	Groups      []Group // empty means one group with full attention
	Events      bool    // record events
	Evictions   bool    // record which registered blocks are handed out again
	MaxTokens   int     // longest sequence; 0 means no cap
	MaxInFlight int     // most tokens of one request in flight at once: bounds what a sliding window holds; 0 means no cap
	Seed        string  // of the root hash; empty means "0"
}

// Cache is the KV cache of one model: the pool, the prefix cache and the rules of its groups. It belongs to one caller.
type Cache struct {
	cfg      Config
	pool     *Pool
	hasher   Hasher
	adapters map[string]int32 // adapter name → number used in keys; 0 is none

	hit       Hit // scratch of Lookup
	events    []Event
	evictions []Eviction
}

// NewCache returns an empty cache.
func NewCache(cfg Config) *Cache {
	invariant.Check(cfg.BlockSize > 0, "block size %d is positive", cfg.BlockSize)
	if len(cfg.Groups) == 0 {
		cfg.Groups = []Group{{}}
	}
	if cfg.Seed == "" {
		cfg.Seed = "0"
	}
	c := &Cache{cfg: cfg, pool: NewPool(cfg.Blocks), adapters: map[string]int32{}}
	c.hasher.Root = RootHash(cfg.Seed)
	c.hit.blocks = make([][]BlockID, len(cfg.Groups))
	if cfg.Events || cfg.Evictions {
		c.pool.onDrop = c.evicted
	}
	return c
}

// Pool returns the pool, for reading.
func (c *Cache) Pool() *Pool { return c.pool }

// Groups returns the number of cache groups.
func (c *Cache) Groups() int { return len(c.cfg.Groups) }

// Extend hashes the newly full blocks of tokens, if caching is on.
func (c *Cache) Extend(chain *Chain, tokens []int32) {
	if c.cfg.Caching {
		chain.Extend(&c.hasher, tokens, c.cfg.BlockSize)
	}
}

// Trim gives back the blocks that lie wholly left of the windows when processed tokens are computed for good.
func (c *Cache) Trim(t *Table, processed int) {
	for g := range t.groups {
		blocks := t.groups[g].blocks
		n := min(c.skippedBlocks(g, processed), len(blocks))
		first := n
		for first > 0 && blocks[first-1] != nullBlock {
			first--
		}
		c.pool.ReleaseReversed(blocks[first:n])
		for i := first; i < n; i++ {
			blocks[i] = nullBlock
		}
	}
}

// Attach gives an empty table its hits, as far as the windows reach when computed tokens are, and behind them blocks for
// external tokens up to external, if that is not 0. All groups touch their hits before any takes a block, or one group could
// evict what another just hit (vLLM #33775).
func (c *Cache) Attach(t *Table, hit *Hit, computed, external int) {
	c.prepare(t)
	for g := range t.groups {
		gt := &t.groups[g]
		if len(gt.blocks) > 0 {
			invariant.Broken("attach to a table that holds %d blocks", len(gt.blocks))
		}
		hits := hit.blocks[g]
		skipped := c.skippedBlocks(g, computed)
		for range skipped {
			gt.blocks = append(gt.blocks, nullBlock)
		}
		if skipped < len(hits) {
			for _, b := range hits[skipped:] {
				c.pool.Touch(b)
			}
			gt.blocks = append(gt.blocks, hits[skipped:]...)
		}
		gt.registered = len(gt.blocks)
	}
	if external > 0 {
		c.Grow(t, external)
	}
}

// Reaches tells whether a table can be computed on from so many tokens: whether each group holds the blocks that the next
// token sees, and its own. That is so for a request's computed tokens; for fewer, windowed groups have given blocks back.
func (c *Cache) Reaches(t *Table, tokens int) bool {
	for g := range t.groups {
		blocks := t.groups[g].blocks
		if first := c.skippedBlocks(g, tokens); first < len(blocks) && blocks[first] == nullBlock {
			return false
		}
	}
	return true
}

// Grow takes blocks until the table has slots for so many tokens. The caller has checked Need.
func (c *Cache) Grow(t *Table, tokens int) {
	c.prepare(t)
	n := c.cfg.blocksFor(tokens)
	for g := range t.groups {
		gt := &t.groups[g]
		for len(gt.blocks) < n {
			gt.blocks = append(gt.blocks, c.pool.Take())
		}
	}
}

// Reserve makes room in the table for so many blocks a group, so that growing to them allocates nothing.
func (c *Cache) Reserve(t *Table, blocks int) {
	c.prepare(t)
	for g := range t.groups {
		gt := &t.groups[g]
		gt.blocks = slices.Grow(gt.blocks, max(0, blocks-len(gt.blocks)))
	}
}

func (c *Cache) prepare(t *Table) {
	if t.groups == nil {
		t.groups = make([]groupTable, len(c.cfg.Groups))
	}
}

// Release gives all blocks back, the last of the table first, and empties the table.
func (c *Cache) Release(t *Table) {
	for g := range t.groups {
		gt := &t.groups[g]
		c.pool.ReleaseReversed(gt.blocks)
		gt.blocks, gt.registered = gt.blocks[:0], 0
	}
}

// Detach empties the table and appends its blocks to dst in the order in which Pool.Release must get them later: for
// blocks that a step in flight still writes.
func (c *Cache) Detach(t *Table, dst []BlockID) []BlockID {
	for g := len(t.groups) - 1; g >= 0; g-- {
		gt := &t.groups[g]
		for i := len(gt.blocks) - 1; i >= 0; i-- {
			dst = append(dst, gt.blocks[i])
		}
		gt.blocks, gt.registered = gt.blocks[:0], 0
	}
	return dst
}

// Reset forgets every hash if no block is referenced, and tells whether it did.
func (c *Cache) Reset() bool {
	if !c.pool.Reset() {
		return false
	}
	if c.cfg.Events {
		c.events = append(c.events, Event{Kind: AllBlocksCleared})
	}
	return true
}

// LoseEvents forgets the events recorded so far and records in their place that all blocks were cleared. It is for events that
// nobody takes: who comes later knows of too few blocks, never of one that is gone.
func (c *Cache) LoseEvents() { c.events = append(c.events[:0], Event{Kind: AllBlocksCleared}) }
