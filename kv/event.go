package kv

import (
	"fmt"
	"slices"
	"strings"
)

// EventKind says what happened to registered blocks.
type EventKind uint8

// The kinds of event, as vLLM's KV events name them.
const (
	BlockStored EventKind = iota + 1
	BlockRemoved
	AllBlocksCleared
)

// String returns vLLM's tag of the event.
func (k EventKind) String() string {
	switch k {
	case BlockStored:
		return "BlockStored"
	case BlockRemoved:
		return "BlockRemoved"
	case AllBlocksCleared:
		return "AllBlocksCleared"
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// Medium is where a block lies.
type Medium uint8

// The media.
const (
	InPool Medium = iota
	InRAM         // host memory behind the pool
)

// Event tells a router what a cache gained or lost. It is a value: nobody changes it afterwards.
type Event struct {
	Kind   EventKind
	Medium Medium
	Group  int    // cache group
	Hashes []Hash // of the blocks, in order; one for BlockRemoved, none for AllBlocksCleared

	// Of BlockStored in the pool. What lies elsewhere was in the pool before, and is known by its hash.
	Parent    Hash    // hash before the first block, when HasParent
	HasParent bool    // false if the first block begins the sequence
	Tokens    []int32 // of the blocks
	LoRA      string  // adapter name, empty for none
	Salt      string  // cache salt if the first block begins the sequence, else empty
}

// String renders the event on one line.
func (e Event) String() string {
	var b strings.Builder
	b.WriteString(e.Kind.String())
	for _, h := range e.Hashes {
		b.WriteString(" " + h.String())
	}
	if e.HasParent {
		b.WriteString(" after " + e.Parent.String())
	}
	if e.Kind == BlockStored {
		fmt.Fprintf(&b, " (%d tokens)", len(e.Tokens))
	}
	return b.String()
}

// Eviction says that a block that held the content of a hash was handed out again. Until its new owner writes to it, the
// content is still there to be copied.
type Eviction struct {
	Block BlockID
	Hash  Hash
	Group int // cache group
}

// Events returns the events recorded so far, oldest first: a view, valid until the next change.
func (c *Cache) Events() []Event { return c.events }

// DropEvents forgets the first n events.
func (c *Cache) DropEvents(n int) { c.events = slices.Delete(c.events, 0, n) }

// Evictions returns the evictions recorded so far, oldest first: a view, valid until the next change. Blocks of adapters
// and tainted ones are not among them.
func (c *Cache) Evictions() []Eviction { return c.evictions }

// DropEvictions forgets them.
func (c *Cache) DropEvictions() { c.evictions = c.evictions[:0] }

// evicted notes that a registered block is being handed out again.
func (c *Cache) evicted(b BlockID) {
	if c.cfg.Events {
		c.dropped(b)
	}
	if x := &c.pool.blocks[b]; c.cfg.Evictions && x.adapter == 0 && !x.tainted {
		c.evictions = append(c.evictions, Eviction{Block: b, Hash: x.hash, Group: int(x.group)})
	}
}

func (c *Cache) dropped(b BlockID) {
	x := &c.pool.blocks[b]
	c.events = append(c.events, Event{Kind: BlockRemoved, Group: int(x.group), Hashes: []Hash{x.hash}})
}

// stored records that the table's blocks from first to end−1 are registered now. Null blocks, left of a window, hold nothing.
func (c *Cache) stored(g int, chain *Chain, blocks []BlockID, first, end int, tokens []int32) {
	for first < end && blocks[first] == nullBlock {
		first++
	}
	if first == end {
		return
	}
	bs := c.cfg.BlockSize
	e := Event{
		Kind:   BlockStored,
		Group:  g,
		Hashes: slices.Clone(chain.Hashes[first:end]),
		Tokens: slices.Clone(tokens[first*bs : end*bs]),
		LoRA:   chain.LoRA,
	}
	if first > 0 {
		e.Parent, e.HasParent = chain.Hashes[first-1], true
	} else {
		e.Salt = chain.Salt
	}
	c.events = append(c.events, e)
}
