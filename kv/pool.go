package kv

import (
	"fmt"

	"github.com/quire-ai/quire/internal/invariant"
)

// BlockID names a block of the pool. Block 0 is the null block: it stands in tables for tokens that are no longer
// needed (left of a sliding window), is never handed out and holds nothing.
type BlockID int32

const nullBlock BlockID = 0

// Null is the null block's id.
const Null = nullBlock

type block struct {
	hash Hash  // valid while hashed
	refs int32 // tables and pins that hold the block

	prev, next BlockID // neighbours in the free queue, while refs is 0

	// Blocks registered under one key form a ring, oldest to newest; the index points to the oldest. Two requests that
	// compute the same tokens at the same time hold two blocks: tables are append-only, so they are not merged.
	older, newer BlockID

	adapter int32
	step    uint32 // in which it was registered, see Pool.Step
	group   uint8
	hashed  bool
	tainted bool // registered, but its content is bad and will be computed again: not to be hit
}

// Pool is the set of all blocks: free or referenced, registered or not.
//
// Free blocks are handed out from the head of a queue. A released block that carries no hash goes to the head, since
// nothing is lost by reusing it; one that carries a hash goes to the tail, so that cached blocks are evicted in the
// order of their release. A request releases its table from the last block to the first, so a cached chain loses its
// tail before its head.
//
// A Pool belongs to one caller. Its methods do not allocate.
type Pool struct {
	blocks []block // [blockCount], index 0 is the null block
	free   int
	index  index
	step   uint32          // noted by Register
	onDrop func(b BlockID) // called when a hash leaves the index because its block is handed out again
}

// NewPool returns a pool of blockCount blocks including the null block: blockCount − 1 are usable, all free, to be
// handed out as 1, 2, 3 … It panics if blockCount is below 1.
func NewPool(blockCount int) *Pool {
	invariant.Check(blockCount >= 1, "pool of %d blocks has no null block", blockCount)
	p := &Pool{blocks: make([]block, blockCount), index: newIndex(blockCount)}
	for b := 1; b < blockCount; b++ {
		p.pushTail(BlockID(b))
	}
	return p
}

// Usable returns the number of blocks that can be handed out.
func (p *Pool) Usable() int { return len(p.blocks) - 1 }

// Free returns the number of free blocks, those with a hash included.
func (p *Pool) Free() int { return p.free }

// Step sets the number of the step in which blocks are registered from now on. Numbers only grow, and may wrap.
func (p *Pool) Step(n uint64) { p.step = uint32(n) }

// RegisteredSince tells whether b is registered, and was so in step n or later.
func (p *Pool) RegisteredSince(b BlockID, n uint64) bool {
	x := &p.blocks[b]
	return x.hashed && int32(x.step-uint32(n)) >= 0
}

// Keys returns the number of distinct keys under which blocks are registered.
func (p *Pool) Keys() int { return p.index.keys }

// Refs returns the number of tables and pins that hold b.
func (p *Pool) Refs(b BlockID) int { return int(p.blocks[b].refs) }

// Hash returns the hash under which b is registered, and whether it is.
func (p *Pool) Hash(b BlockID) (Hash, bool) { return p.blocks[b].hash, p.blocks[b].hashed }

// AppendHashes appends the hash of each registered key to dst: of every group and adapter, in no order.
func (p *Pool) AppendHashes(dst []Hash) []Hash {
	for _, b := range p.index.slots {
		if b != nullBlock {
			dst = append(dst, p.blocks[b].hash)
		}
	}
	return dst
}

// AppendFree appends the first n ids of the free queue to dst: the blocks that will be handed out next.
func (p *Pool) AppendFree(dst []BlockID, n int) []BlockID {
	for b := p.blocks[nullBlock].next; b != nullBlock && n > 0; b = p.blocks[b].next {
		dst = append(dst, b)
		n--
	}
	return dst
}

// Take hands out the block at the head of the free queue with one reference. If it was registered, it is evicted from
// the prefix cache now. The caller has checked that the pool is not empty.
func (p *Pool) Take() BlockID {
	b := p.blocks[nullBlock].next
	if b == nullBlock {
		invariant.Broken("invariant 1: take from an empty pool of %d blocks", p.Usable())
	}
	x := &p.blocks[b]
	if x.refs != 0 {
		invariant.Broken("invariant 1: free block %d has %d references", b, x.refs)
	}
	p.unlink(b)
	if x.hashed {
		if p.onDrop != nil {
			p.onDrop(b)
		}
		p.Unregister(b)
	}
	x.refs = 1
	return b
}

// Touch adds a reference to b, taking it out of the free queue if it was there.
func (p *Pool) Touch(b BlockID) {
	if b == nullBlock {
		return
	}
	if p.blocks[b].refs == 0 {
		p.unlink(b)
	}
	p.blocks[b].refs++
}

// Release drops one reference of each block, in the order given. Those that nobody holds any more become free: blocks
// without a hash go to the head of the queue, the first given to the very head; blocks with a hash go to the tail.
// Null blocks are ignored.
func (p *Pool) Release(blocks []BlockID) {
	after := nullBlock // the last block put at the head by this call
	for _, b := range blocks {
		after = p.release(b, after)
	}
}

// ReleaseReversed is Release with the blocks taken from the last to the first, as a table is released.
func (p *Pool) ReleaseReversed(blocks []BlockID) {
	after := nullBlock
	for i := len(blocks) - 1; i >= 0; i-- {
		after = p.release(blocks[i], after)
	}
}

// release drops one reference of b and returns the block behind which the next unhashed one goes.
func (p *Pool) release(b, after BlockID) BlockID {
	if b == nullBlock {
		return after
	}
	x := &p.blocks[b]
	if x.refs <= 0 {
		invariant.Broken("invariant 2: release of free block %d", b)
	}
	x.refs--
	if x.refs > 0 {
		return after
	}
	if x.hashed {
		p.pushTail(b)
		return after
	}
	p.link(b, after, p.blocks[after].next)
	return b
}

// Lookup returns the oldest block registered under hash for the group and adapter. A tainted block is returned as such:
// its holder will fill it, nobody else may count on it.
func (p *Pool) Lookup(hash *Hash, group int, adapter int32) (b BlockID, ok bool) {
	slot, ok := p.find(key{hash, uint8(group), adapter})
	return p.index.slots[slot], ok
}

// Taint marks a registered block whose content turned out bad. Its holder computes it again and calls Clean then.
func (p *Pool) Taint(b BlockID) { p.blocks[b].tainted = p.blocks[b].hashed }

// Clean takes the mark off a block that is computed again, as if it were registered only now.
func (p *Pool) Clean(b BlockID) {
	if x := &p.blocks[b]; x.tainted {
		x.tainted, x.step = false, p.step
	}
}

// Tainted tells whether b is marked.
func (p *Pool) Tainted(b BlockID) bool { return p.blocks[b].tainted }

// Register enters a full, referenced block into the prefix cache.
func (p *Pool) Register(b BlockID, hash *Hash, group int, adapter int32) {
	x := &p.blocks[b]
	if b == nullBlock || x.refs <= 0 {
		invariant.Broken("invariant 3: register of block %d with %d references", b, x.refs)
	}
	if x.hashed {
		invariant.Broken("invariant 3: block %d is registered already", b)
	}
	slot, found := p.find(key{hash, uint8(group), adapter})
	x.hash, x.group, x.adapter, x.step, x.hashed = *hash, uint8(group), adapter, p.step, true
	if !found {
		p.index.slots[slot] = b
		p.index.keys++
		x.older, x.newer = b, b
		return
	}
	oldest := p.index.slots[slot]
	newest := p.blocks[oldest].older
	x.older, x.newer = newest, oldest
	p.blocks[newest].newer = b
	p.blocks[oldest].older = b
}

// Unregister takes b out of the prefix cache; its place and references stay as they are. It does nothing if b is not
// registered.
func (p *Pool) Unregister(b BlockID) {
	x := &p.blocks[b]
	if !x.hashed {
		return
	}
	slot, found := p.find(p.key(b))
	if !found {
		invariant.Broken("invariant 3: registered block %d is not in the index", b)
	}
	switch {
	case x.newer == b:
		p.vacate(slot)
	default:
		p.blocks[x.older].newer = x.newer
		p.blocks[x.newer].older = x.older
		if p.index.slots[slot] == b {
			p.index.slots[slot] = x.newer
		}
	}
	x.hashed, x.tainted = false, false
	x.older, x.newer = nullBlock, nullBlock
}

// Reset forgets all hashes, if no block is referenced, and tells whether it did.
func (p *Pool) Reset() bool {
	if p.free != p.Usable() {
		return false
	}
	for b := range p.blocks {
		x := &p.blocks[b]
		x.hashed, x.tainted, x.older, x.newer = false, false, nullBlock, nullBlock
	}
	clear(p.index.slots)
	p.index.keys = 0
	return true
}

func (p *Pool) key(b BlockID) key {
	x := &p.blocks[b]
	return key{&x.hash, x.group, x.adapter}
}

// Audit checks the pool's invariants against the references the caller knows of: held[b] is the number of tables and
// pins that hold block b. It walks everything, so it belongs in tests and behind invariant.Enabled.
func (p *Pool) Audit(held []int32) error {
	onQueue := make([]bool, len(p.blocks))
	count := 0
	for b := p.blocks[nullBlock].next; b != nullBlock; b = p.blocks[b].next {
		if onQueue[b] || p.blocks[p.blocks[b].next].prev != b {
			return fmt.Errorf("invariant 1: free queue is broken at block %d", b)
		}
		onQueue[b] = true
		count++
	}
	if count != p.free {
		return fmt.Errorf("invariant 1: %d blocks on the free queue, %d counted", count, p.free)
	}
	hashed := 0
	for b := 1; b < len(p.blocks); b++ {
		x := &p.blocks[b]
		if (x.refs == 0) != onQueue[b] {
			return fmt.Errorf("invariant 1: block %d has %d references, on the free queue: %t", b, x.refs, onQueue[b])
		}
		if x.refs != held[b] {
			return fmt.Errorf("invariant 2: block %d has %d references, %d tables and pins hold it", b, x.refs, held[b])
		}
		if x.hashed {
			hashed++
		}
	}
	return p.auditIndex(hashed)
}

// auditIndex checks that every registered block is reached from the index, once.
func (p *Pool) auditIndex(hashed int) error {
	keys, reached := 0, 0
	for slot, first := range p.index.slots {
		if first == nullBlock {
			continue
		}
		keys++
		if s, ok := p.find(p.key(first)); !ok || s != uint64(slot) {
			return fmt.Errorf("invariant 3: block %d stands in slot %d where it is not found", first, slot)
		}
		for b := first; ; {
			reached++
			if !p.blocks[b].hashed || reached > hashed {
				return fmt.Errorf("invariant 3: block %d is in the index but not registered", b)
			}
			if b = p.blocks[b].newer; b == first {
				break
			}
		}
	}
	if keys != p.index.keys || reached != hashed {
		return fmt.Errorf("invariant 3: %d keys and %d blocks in the index, counted %d and %d", keys, reached, p.index.keys, hashed)
	}
	return nil
}
