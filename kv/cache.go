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

// Hit is the result of a lookup: Tokens leading tokens are cached. It is valid until the next lookup.
type Hit struct {
	Tokens  int
	Tainted bool        // it ends before a block whose content is bad and will be computed again
	blocks  [][]BlockID // [group], null blocks where the window does not reach
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

// Eviction says that a block that held the content of a hash was handed out again. Until its new owner writes to it, the
// content is still there to be copied.
type Eviction struct {
	Block BlockID
	Hash  Hash
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

// Attach gives an empty table its hits and, behind them, blocks for the external tokens up to computed. All groups
// touch their hits before any takes a block, or one group could evict what another just hit (vLLM #33775).
func (c *Cache) Attach(t *Table, hit *Hit, computed int, external bool) {
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
	if external {
		c.Grow(t, computed)
	}
}

// Grow takes blocks until the table has slots for so many tokens. The caller has checked Need.
func (c *Cache) Grow(t *Table, tokens int) {
	c.prepare(t)
	n := c.blocksFor(tokens)
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
			c.stored(g, chain, gt.registered, full, tokens)
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

// ForgetUnshared takes the table's blocks from index first on out of the prefix cache, unless another table holds them too.
func (c *Cache) ForgetUnshared(t *Table, first int) {
	for g := range t.groups {
		gt := &t.groups[g]
		for i := first; i < gt.registered; i++ {
			if c.pool.Refs(gt.blocks[i]) == 1 {
				c.Forget(gt.blocks[i])
			}
		}
	}
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

// Events returns the events recorded so far, oldest first: a view, valid until the next change.
func (c *Cache) Events() []Event { return c.events }

// DropEvents forgets the first n events.
func (c *Cache) DropEvents(n int) { c.events = append(c.events[:0], c.events[n:]...) }

// Evictions returns the evictions recorded so far, oldest first: a view, valid until the next change. Blocks of adapters,
// of further groups, and tainted ones are not among them.
func (c *Cache) Evictions() []Eviction { return c.evictions }

// DropEvictions forgets them.
func (c *Cache) DropEvictions() { c.evictions = c.evictions[:0] }

// evicted notes that a registered block is being handed out again.
func (c *Cache) evicted(b BlockID) {
	if c.cfg.Events {
		c.dropped(b)
	}
	if x := &c.pool.blocks[b]; c.cfg.Evictions && x.adapter == 0 && x.group == 0 && !x.tainted {
		c.evictions = append(c.evictions, Eviction{Block: b, Hash: x.hash})
	}
}

func (c *Cache) dropped(b BlockID) {
	x := &c.pool.blocks[b]
	c.events = append(c.events, Event{Kind: BlockRemoved, Group: int(x.group), Hashes: []Hash{x.hash}})
}

func (c *Cache) stored(g int, chain *Chain, first, end int, tokens []int32) {
	bs := c.cfg.BlockSize
	e := Event{
		Kind:   BlockStored,
		Group:  g,
		Hashes: append([]Hash(nil), chain.Hashes[first:end]...),
		Tokens: append([]int32(nil), tokens[first*bs:end*bs]...),
		LoRA:   chain.LoRA,
	}
	if first > 0 {
		e.Parent, e.HasParent = chain.Hashes[first-1], true
	} else {
		e.Salt = chain.Salt
	}
	c.events = append(c.events, e)
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
