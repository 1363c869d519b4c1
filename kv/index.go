package kv

import "encoding/binary"

// key names a registered block: the hash of its tokens and everything before them, the cache group whose layers it
// holds, and the adapter that computed it. The adapter is part of the hash already, but only by its name, and a cache
// salt may spell the same name; here they cannot meet.
type key struct {
	hash    *Hash
	group   uint8
	adapter int32
}

// index finds the oldest block registered under a key: an open-addressing table of block ids with linear probing, at
// most half full. The keys themselves live in the blocks, so an entry costs eight bytes, and nothing is ever allocated
// after construction. Deletion moves later entries back instead of leaving tombstones, so age does not slow it down.
type index struct {
	slots []BlockID // nullBlock marks an empty slot
	mask  uint64
	keys  int // occupied slots: distinct keys
}

func newIndex(blocks int) index {
	size := 16
	for size < 2*blocks {
		size *= 2
	}
	return index{slots: make([]BlockID, size), mask: uint64(size - 1)}
}

// home is the slot where a key would like to be. SHA-256 is uniform, so eight bytes of it are a hash already.
func (x *index) home(k key) uint64 {
	return (binary.LittleEndian.Uint64(k.hash[:]) + uint64(k.group)*0x9e3779b97f4a7c15 + uint64(k.adapter)*0xd1342543de82ef95) & x.mask
}

// find returns the slot that holds k, or the empty slot where it belongs, and whether it was found.
func (p *Pool) find(k key) (slot uint64, ok bool) {
	for i := p.index.home(k); ; i = (i + 1) & p.index.mask {
		b := p.index.slots[i]
		if b == nullBlock {
			return i, false
		}
		x := &p.blocks[b]
		if x.group == k.group && x.adapter == k.adapter && x.hash == *k.hash {
			return i, true
		}
	}
}

// vacate empties slot i and moves back the entries behind it that would no longer be found.
func (p *Pool) vacate(i uint64) {
	x := &p.index
	x.keys--
	for j := i; ; {
		x.slots[i] = nullBlock
		for {
			j = (j + 1) & x.mask
			b := x.slots[j]
			if b == nullBlock {
				return
			}
			// The entry at j may move to i unless its home lies cyclically in (i, j].
			home := x.home(p.key(b))
			if (j-home)&x.mask >= (j-i)&x.mask {
				x.slots[i] = b
				i = j
				break
			}
		}
	}
}
