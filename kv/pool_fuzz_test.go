package kv

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// naive is the pool as one would write it down first: slices that are searched.
type naive struct {
	queue []BlockID          // free blocks, next first
	refs  map[BlockID]int    // of referenced blocks
	hash  map[BlockID]Hash   // of registered blocks
	order map[Hash][]BlockID // registered blocks of a hash, oldest first
}

func newNaive(blocks int) *naive {
	n := &naive{refs: map[BlockID]int{}, hash: map[BlockID]Hash{}, order: map[Hash][]BlockID{}}
	for b := 1; b < blocks; b++ {
		n.queue = append(n.queue, BlockID(b))
	}
	return n
}

func (n *naive) take() BlockID {
	b := n.queue[0]
	n.queue = n.queue[1:]
	n.unregister(b)
	n.refs[b] = 1
	return b
}

func (n *naive) touch(b BlockID) {
	n.queue = slices.DeleteFunc(n.queue, func(x BlockID) bool { return x == b })
	n.refs[b]++
}

func (n *naive) release(blocks []BlockID) {
	var head []BlockID
	for _, b := range blocks {
		if n.refs[b]--; n.refs[b] > 0 {
			continue
		}
		delete(n.refs, b)
		if _, hashed := n.hash[b]; hashed {
			n.queue = append(n.queue, b)
		} else {
			head = append(head, b)
		}
	}
	n.queue = append(head, n.queue...)
}

func (n *naive) register(b BlockID, h Hash) {
	n.hash[b] = h
	n.order[h] = append(n.order[h], b)
}

func (n *naive) unregister(b BlockID) {
	h, ok := n.hash[b]
	if !ok {
		return
	}
	delete(n.hash, b)
	n.order[h] = slices.DeleteFunc(n.order[h], func(x BlockID) bool { return x == b })
	if len(n.order[h]) == 0 {
		delete(n.order, h)
	}
}

// FuzzPool runs random operations on a pool and on the naive one, and compares every answer and the whole state after
// every step. Few hashes, some of which share a home in the index, make duplicates and long probes common.
func FuzzPool(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(3+seed), uint16(400))
	}
	f.Fuzz(func(t *testing.T, seed uint64, blocks uint8, steps uint16) {
		rng := rand.New(rand.NewPCG(seed, 1))
		size := int(blocks)%60 + 2
		p, n := NewPool(size), newNaive(size)
		var tables [][]BlockID
		for range int(steps) % 2000 {
			tables = poolStep(t, rng, p, n, tables)
			comparePools(t, p, n, tables)
		}
	})
}

// poolStep does one random operation on both and returns the tables that hold blocks now.
func poolStep(t *testing.T, rng *rand.Rand, p *Pool, n *naive, tables [][]BlockID) [][]BlockID {
	var hash Hash
	hash[0], hash[31] = byte(rng.IntN(3)), byte(rng.IntN(6)) // few homes, more hashes
	switch op := rng.IntN(10); {
	case op < 4 && p.Free() > 0: // a table of some new blocks
		var table []BlockID
		for range 1 + rng.IntN(p.Free()) {
			got, want := p.Take(), n.take()
			if got != want {
				t.Fatalf("Take() = %d; want %d", got, want)
			}
			table = append(table, got)
		}
		tables = append(tables, table)
	case op < 6 && len(tables) > 0: // release one, from its end or in order
		i := rng.IntN(len(tables))
		table := tables[i]
		tables = slices.Delete(tables, i, i+1)
		if rng.IntN(2) == 0 {
			p.ReleaseReversed(table)
			slices.Reverse(table)
		} else {
			p.Release(table)
		}
		n.release(table)
	case op < 8 && len(tables) > 0: // register a block
		table := tables[rng.IntN(len(tables))]
		b := table[rng.IntN(len(table))]
		if _, hashed := n.hash[b]; !hashed {
			p.Register(b, &hash, 0, 0)
			n.register(b, hash)
		}
	case op == 8: // a hit
		got, ok := p.Lookup(&hash, 0, 0)
		want, wantOK := oldest(n.order[hash])
		if got != want || ok != wantOK {
			t.Fatalf("Lookup = %d, %t; want %d, %t", got, ok, want, wantOK)
		}
		if ok {
			p.Touch(got)
			n.touch(want)
			tables = append(tables, []BlockID{got})
		}
	default: // forget a block
		b := BlockID(1 + rng.IntN(p.Usable()))
		p.Unregister(b)
		n.unregister(b)
	}
	return tables
}

// oldest returns the first of blocks, or the null block if there is none.
func oldest(blocks []BlockID) (BlockID, bool) {
	if len(blocks) == 0 {
		return nullBlock, false
	}
	return blocks[0], true
}

func comparePools(t *testing.T, p *Pool, n *naive, tables [][]BlockID) {
	t.Helper()
	if got := p.AppendFree(nil, p.Usable()); !slices.Equal(got, n.queue) {
		t.Fatalf("free queue %v; want %v", got, n.queue)
	}
	if p.Keys() != len(n.order) {
		t.Fatalf("Keys() = %d; want %d", p.Keys(), len(n.order))
	}
	held := make([]int32, p.Usable()+1)
	for _, table := range tables {
		for _, b := range table {
			held[b]++
		}
	}
	if err := p.Audit(held); err != nil {
		t.Fatal(err)
	}
	for hash, blocks := range n.order {
		if b, ok := p.Lookup(&hash, 0, 0); !ok || b != blocks[0] {
			t.Fatalf("Lookup(%v) = %d, %t; want %d, the oldest of %v", hash, b, ok, blocks[0], blocks)
		}
	}
}
