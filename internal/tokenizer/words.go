package tokenizer

import "sync/atomic"

// wordIndex finds words that are a token by themselves, which most words of most texts are, so that they need no
// merging. The vocabulary thus serves as the cache of pieces: it cannot grow, and there is nothing to evict or lock.
//
// That a word is spelled like a token does not mean that merging leads to it: "reachable" tokens are found out the first
// time they are met, and remembered in two bits a token.
type wordIndex struct {
	ids     map[string]int32 // bytes of the word → token
	known   []uint32         // bit set: merging this token's text has been tried
	reached []uint32         // bit set: it led to this token
}

// newWordIndex makes the index of the given tokens out of a vocabulary of n tokens.
func newWordIndex(ids map[string]int32, n int) *wordIndex {
	words := (n + 31) / 32
	return &wordIndex{ids: ids, known: make([]uint32, words), reached: make([]uint32, words)}
}

// allReached says that each token is to be taken when met (preRules.wholeWords).
func (w *wordIndex) allReached() {
	for i := range w.known {
		w.known[i], w.reached[i] = ^uint32(0), ^uint32(0)
	}
}

// find returns the token that is spelled like the word, or None, and what is known of it.
func (w *wordIndex) find(word string) (id int32, known, reached bool) {
	id, ok := w.ids[word]
	if !ok {
		return None, false, false
	}
	mask := uint32(1) << (id & 31)
	if atomic.LoadUint32(&w.known[id>>5])&mask == 0 {
		return id, false, false
	}
	return id, true, atomic.LoadUint32(&w.reached[id>>5])&mask != 0
}

// learn records whether merging the text of token id led to it. It may run at the same time as find and learn: the
// answer is the same each time, and reached is set before known.
func (w *wordIndex) learn(id int32, reached bool) {
	mask := uint32(1) << (id & 31)
	if reached {
		atomic.OrUint32(&w.reached[id>>5], mask)
	}
	atomic.OrUint32(&w.known[id>>5], mask)
}
