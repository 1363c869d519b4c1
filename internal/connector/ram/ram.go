// Package ram keeps KV blocks that left the pool in memory of a fixed size.
//
// It is a victim cache: a block comes in when the pool gives its place to another, and the block used longest ago goes. A
// block that is being copied out is pinned and stays. What is in it is as trustworthy as the pool itself and carries no
// checksum.
package ram

import (
	"fmt"
	"sync"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/kv"
)

// Slot names a place of the cache that a Pin holds.
type Slot int32

// sentinel is the slot that stands for both ends of the queue of unpinned blocks.
const sentinel Slot = 0

// Cache holds blocks by their hash. Its methods may be called concurrently.
type Cache struct {
	blockBytes int
	capacity   int    // blocks
	memory     []byte // [slot][blockBytes], outside the Go heap; pages that were never used cost nothing

	mu      sync.Mutex // guards what follows
	index   map[key]Slot
	slots   []slot // ever used; [0] is the sentinel: next is the oldest, prev the newest
	vacant  []Slot // used, and empty
	evicted uint64
	stored  uint64
	pinned  int // blocks
	record  bool
	events  []kv.Event
}

// key names a block: by the hash of its tokens and the cache group whose layers it holds.
type key struct {
	hash  kv.Hash
	group int
}

type slot struct {
	key        key
	prev, next Slot // in the queue, while pins is 0
	pins       int32
}

// New returns an empty cache for as many blocks as fit into sizeBytes, at least one.
func New(sizeBytes int64, blockBytes int) (*Cache, error) {
	n := sizeBytes / int64(blockBytes)
	if n < 1 || n >= 1<<31-1 {
		return nil, fmt.Errorf("ram tier of %d bytes: holds %d blocks of %d bytes", sizeBytes, n, blockBytes)
	}
	memory, err := cpu.Alloc(int(n) * blockBytes)
	if err != nil {
		return nil, fmt.Errorf("ram tier: %w", err)
	}
	return &Cache{blockBytes: blockBytes, memory: memory, index: map[key]Slot{}, slots: make([]slot, 1), capacity: int(n)}, nil
}

// Close frees the memory. Nobody may hold a pin.
func (c *Cache) Close() error { return cpu.Free(c.memory) }

// RecordEvents has the cache keep what it gains and loses for AppendEvents. It is called before all else.
func (c *Cache) RecordEvents() { c.record = true }

// AppendEvents appends what the cache gained and lost since it was called last.
func (c *Cache) AppendEvents(dst []kv.Event) []kv.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	dst = append(dst, c.events...)
	clear(c.events)
	c.events = c.events[:0]
	return dst
}

// note keeps an event, if anybody wants to know.
func (c *Cache) note(kind kv.EventKind, k key) {
	if c.record {
		c.events = append(c.events, kv.Event{Kind: kind, Medium: kv.InRAM, Group: k.group, Hashes: []kv.Hash{k.hash}})
	}
}

// forget takes an unpinned block out of the index and the queue.
func (c *Cache) forget(s Slot) {
	c.unlink(s)
	delete(c.index, c.slots[s].key)
	c.note(kv.BlockRemoved, c.slots[s].key)
}

// Has tells whether the block of the hash and cache group is there.
func (c *Cache) Has(h *kv.Hash, group int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.index[key{*h, group}]
	return ok
}

// Put copies a block in, in place of the one used longest ago. It does nothing if the block is there, or if every other is
// pinned. It has one caller.
func (c *Cache) Put(h *kv.Hash, group int, block []byte) {
	k := key{*h, group}
	s, ok := c.reserve(k)
	if !ok {
		return
	}
	copy(c.bytes(s), block)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots[s].key = k
	c.index[k] = s
	c.stored++
	c.note(kv.BlockStored, k)
	c.unpin(s)
}

// reserve finds a place for a block that is not there and pins it.
func (c *Cache) reserve(k key) (Slot, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.index[k]; ok {
		c.touch(s)
		return 0, false
	}
	var s Slot
	switch {
	case len(c.vacant) > 0:
		s = c.vacant[len(c.vacant)-1]
		c.vacant = c.vacant[:len(c.vacant)-1]
	case len(c.slots) <= c.capacity:
		s = Slot(len(c.slots))
		c.slots = append(c.slots, slot{})
	default:
		if s = c.slots[sentinel].next; s == sentinel {
			return 0, false
		}
		c.forget(s)
		c.evicted++
	}
	c.slots[s].pins = 1
	c.pinned++
	return s, true
}

// Pin finds a block and keeps it until Unpin. The bytes must not be written to.
func (c *Cache) Pin(h *kv.Hash, group int) (Slot, []byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.index[key{*h, group}]
	if !ok {
		return 0, nil, false
	}
	if c.slots[s].pins == 0 {
		c.unlink(s)
		c.pinned++
	}
	c.slots[s].pins++
	return s, c.bytes(s), true
}

// Unpin gives a pin back. The block is the newest now.
func (c *Cache) Unpin(s Slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unpin(s)
}

func (c *Cache) unpin(s Slot) {
	x := &c.slots[s]
	invariant.Check(x.pins > 0, "slot %d of the ram tier is pinned", s)
	if x.pins--; x.pins == 0 {
		c.pinned--
		c.pushNewest(s)
	}
}

// Clear drops every block that is not pinned.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := c.slots[sentinel].next; s != sentinel; s = c.slots[sentinel].next {
		c.forget(s)
		c.vacant = append(c.vacant, s)
	}
}

// Stats is the state of the moment, and counters.
type Stats struct {
	Blocks, Capacity int
	BlockBytes       int
	Pinned           int
	Stored           uint64 // blocks copied in
	Evicted          uint64 // blocks that made room
}

// Stats returns the state of the moment.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{
		Blocks: len(c.index), Capacity: c.capacity, BlockBytes: c.blockBytes, Pinned: c.pinned, Stored: c.stored, Evicted: c.evicted,
	}
}

func (c *Cache) bytes(s Slot) []byte {
	return c.memory[(int(s)-1)*c.blockBytes:][:c.blockBytes:c.blockBytes]
}

func (c *Cache) touch(s Slot) {
	if c.slots[s].pins == 0 {
		c.unlink(s)
		c.pushNewest(s)
	}
}

func (c *Cache) pushNewest(s Slot) {
	newest := c.slots[sentinel].prev
	c.slots[s].prev, c.slots[s].next = newest, sentinel
	c.slots[newest].next, c.slots[sentinel].prev = s, s
}

func (c *Cache) unlink(s Slot) {
	x := &c.slots[s]
	c.slots[x.prev].next, c.slots[x.next].prev = x.next, x.prev
}
