package tokenizer

import (
	"slices"
	"strings"
)

// specials finds special tokens in text. Where their texts overlap, the longest token of all wins wherever it stands,
// then the next longest in what is left: llama.cpp's tokenizer_st_partition, which searches the text for one token
// after the other. Here all are found in one pass with a trie, and a heap settles the order.
type specials struct {
	nodes []trieNode // nodes[0] is the root
	first [256]bool  // bytes with which some token begins
	rank  []int32    // token id → its place in the order of search; −1 for tokens that are not searched for
	ids   []int32    // the reverse
	v     *vocab
}

// trieNode is a prefix of some token's text. Children are a list, since most nodes have one.
type trieNode struct {
	child, sibling int32 // 0 for none
	id             int32 // the token that ends here, or None
	b              byte
}

// match is a special token found: text[start:end], with the white space it swallows included.
type match struct {
	start, end int
	id         int32
}

// newSpecials makes the searcher for the given tokens.
func newSpecials(v *vocab, ids []int32) *specials {
	s := &specials{v: v, nodes: []trieNode{{id: None}}, rank: make([]int32, len(v.texts))}
	s.ids = slices.Clone(ids)
	slices.SortStableFunc(s.ids, func(a, b int32) int { return len(v.texts[b]) - len(v.texts[a]) })
	for i := range s.rank {
		s.rank[i] = -1
	}
	for i, id := range s.ids {
		s.rank[id] = int32(i)
		s.insert(v.texts[id], id)
	}
	return s
}

func (s *specials) insert(text string, id int32) {
	s.first[text[0]] = true
	at := int32(0)
	for i := range len(text) {
		next := s.step(at, text[i])
		if next == 0 {
			next = int32(len(s.nodes))
			s.nodes = append(s.nodes, trieNode{b: text[i], id: None, sibling: s.nodes[at].child})
			s.nodes[at].child = next
		}
		at = next
	}
	s.nodes[at].id = id
}

// step returns the child of a node for a byte, or 0.
func (s *specials) step(node int32, b byte) int32 {
	for at := s.nodes[node].child; at != 0; at = s.nodes[at].sibling {
		if s.nodes[at].b == b {
			return at
		}
	}
	return 0
}

// longest returns the longest token that text begins with, of at most limit bytes, or None.
func (s *specials) longest(text string, limit int) int32 {
	found, at := int32(None), int32(0)
	for i := range min(len(text), limit) {
		if at = s.step(at, text[i]); at == 0 {
			break
		}
		if id := s.nodes[at].id; id != None {
			found = id
		}
	}
	return found
}

// find returns the special tokens of text in the order in which they stand.
func (s *specials) find(text string) []match {
	var queue []uint64 // rank<<40 | start: the order in which tokens are settled
	const startBits = 40
	for pos := 0; pos < len(text); pos++ {
		if !s.first[text[pos]] {
			continue
		}
		if id := s.longest(text[pos:], len(text)); id != None {
			queue = append(queue, uint64(s.rank[id])<<startBits|uint64(pos))
		}
	}
	if len(queue) == 0 {
		return nil
	}
	heapify(queue)
	taken := make([]bool, len(text))
	var matches []match
	for len(queue) > 0 {
		var top uint64
		top, queue = popHeap(queue)
		start := int(top & (1<<startBits - 1))
		id := s.ids[top>>startBits]
		end := start + len(s.v.texts[id])
		if room := freeRun(taken, start, end); room < end {
			if id := s.longest(text[start:], room-start); id != None {
				queue = pushHeap(queue, uint64(s.rank[id])<<startBits|uint64(start))
			}
			continue
		}
		if s.v.has(id, attrStripRight) {
			for end < len(text) && !taken[end] && isSpaceByte(text[end]) {
				end++
			}
		}
		for i := start; i < end; i++ {
			taken[i] = true
		}
		matches = append(matches, match{start, end, id})
	}
	slices.SortFunc(matches, func(a, b match) int { return a.start - b.start })
	return matches
}

// freeRun returns where the run of bytes that are not taken, from start on, ends; at most end.
func freeRun(taken []bool, start, end int) int {
	for i := start; i < end; i++ {
		if taken[i] {
			return i
		}
	}
	return end
}

// isSpaceByte is C's isspace, which llama.cpp uses here.
func isSpaceByte(b byte) bool { return strings.IndexByte(" \t\n\v\f\r", b) >= 0 }
