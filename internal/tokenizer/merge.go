package tokenizer

import "math"

// symbol is a stretch of the word being merged, at first one byte or character. Symbols live in a slice; the linked list
// of the living ones goes through prev and next.
type symbol struct {
	start, end int32  // the symbol is word[start:end]
	prev, next int32  // indices of the neighbours, −1 at the ends
	id         int32  // its token, or None; byte-level BPE also has ids beyond the vocabulary (bpe.go)
	rank       uint32 // of joining it with its right neighbour, noRank if they do not join
	joined     int32  // the id of that join
}

// noRank is the rank of a pair that does not join.
const noRank = math.MaxUint32

// pairRanker knows which neighbours join: the lower the rank the earlier, and of equal ranks the leftmost.
type pairRanker interface {
	rank(word string, left, right *symbol) (rank uint32, id int32)
}

// shortWord is the number of symbols up to which looking through all pairs beats a heap (BenchmarkMergeShort).
const shortWord = 40

// merger is the scratch space of merging, kept for reuse.
type merger struct {
	symbols []symbol
	queue   []uint64 // heap of rank<<32 | index of the left symbol
}

// add appends a symbol to the word.
func (m *merger) add(start, end int, id int32) {
	n := int32(len(m.symbols))
	m.symbols = append(m.symbols, symbol{start: int32(start), end: int32(end), prev: n - 1, next: n + 1, id: id})
}

// merge joins the symbols of word until no pair joins. The survivors are the list that begins with symbols[0].
func (m *merger) merge(word string, ranker pairRanker) {
	if len(m.symbols) == 0 {
		return
	}
	m.symbols[len(m.symbols)-1].next = -1
	for i := range m.symbols {
		m.setRank(word, int32(i), ranker)
	}
	if len(m.symbols) <= shortWord {
		m.mergeShort(word, ranker)
	} else {
		m.mergeLong(word, ranker)
	}
}

// setRank looks up how symbol i joins with its right neighbour.
func (m *merger) setRank(word string, i int32, ranker pairRanker) {
	s := &m.symbols[i]
	if s.next < 0 {
		s.rank = noRank
		return
	}
	s.rank, s.joined = ranker.rank(word, s, &m.symbols[s.next])
}

// mergeShort finds the best pair by looking at all.
func (m *merger) mergeShort(word string, ranker pairRanker) {
	for {
		best, rank := int32(-1), uint32(noRank)
		for i := int32(0); i >= 0; i = m.symbols[i].next {
			if m.symbols[i].rank < rank {
				best, rank = i, m.symbols[i].rank
			}
		}
		if best < 0 {
			return
		}
		m.join(best)
		m.setRank(word, best, ranker)
		if prev := m.symbols[best].prev; prev >= 0 {
			m.setRank(word, prev, ranker)
		}
	}
}

// mergeLong keeps the pairs in a heap, so that a word of a million characters takes n·log n steps. An entry of the heap
// is out of date when its left symbol no longer joins at that rank: dead symbols have noRank, and a symbol that grew has
// the rank of its new pair, for which there is another entry.
func (m *merger) mergeLong(word string, ranker pairRanker) {
	m.queue = m.queue[:0]
	for i := range m.symbols {
		if m.symbols[i].rank != noRank {
			m.queue = append(m.queue, uint64(m.symbols[i].rank)<<32|uint64(i))
		}
	}
	heapify(m.queue)
	for len(m.queue) > 0 {
		var top uint64
		top, m.queue = popHeap(m.queue)
		left := int32(uint32(top))
		if m.symbols[left].rank != uint32(top>>32) {
			continue
		}
		m.join(left)
		m.requeue(word, left, ranker)
		if prev := m.symbols[left].prev; prev >= 0 {
			m.requeue(word, prev, ranker)
		}
	}
}

// requeue looks up symbol i's pair again and puts it into the heap.
func (m *merger) requeue(word string, i int32, ranker pairRanker) {
	m.setRank(word, i, ranker)
	if rank := m.symbols[i].rank; rank != noRank {
		m.queue = pushHeap(m.queue, uint64(rank)<<32|uint64(i))
	}
}

// join gives symbol left the text of its right neighbour, which leaves the list.
func (m *merger) join(left int32) {
	l := &m.symbols[left]
	r := &m.symbols[l.next]
	l.end, l.id, l.next = r.end, l.joined, r.next
	r.rank = noRank
	if l.next >= 0 {
		m.symbols[l.next].prev = left
	}
}

// heapify makes h a heap with the smallest value first.
func heapify(h []uint64) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		siftDown(h, i)
	}
}

// pushHeap adds v.
func pushHeap(h []uint64, v uint64) []uint64 {
	h = append(h, v)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent] <= v {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = v
	return h
}

// popHeap removes the smallest value.
func popHeap(h []uint64) (uint64, []uint64) {
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	if last > 1 {
		siftDown(h, 0)
	}
	return top, h
}

// siftDown moves h[i] down to its place.
func siftDown(h []uint64, i int) {
	v := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if v <= h[child] {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = v
}
