package tokenizer

import (
	"fmt"
	"strings"
)

// bpe is byte-level BPE. Its symbols are the vocabulary's tokens and, with ids from len(texts) up, those results of
// merges that are no token; merging may pass through them.
type bpe struct {
	scan    scanner
	words   *wordIndex
	pairs   *pairTable
	byteIDs [256]int32 // the symbol of each byte; None if the vocabulary cannot spell it
	tokens  int32      // symbols below this are tokens
	extra   []string   // bytes of symbol tokens+i
}

// newBPE reads the merge list: rank i is "left right" in the vocabulary's spelling.
func newBPE(v *vocab, merges []string, rules preRules) (*bpe, error) {
	if len(merges) == 0 {
		return nil, fmt.Errorf("tokenizer.ggml.merges: missing or empty, needed for tokenizer.ggml.model gpt2")
	}
	bl := newByteLevel()
	v.setPieces(bl.decode)
	b := &bpe{scan: rules.scan, tokens: int32(len(v.texts)), pairs: newPairTable(len(merges))}

	spelled := map[string]int32{} // spelling of the symbols that are no token
	symbol := func(text string) int32 {
		if id, ok := v.ids[text]; ok {
			return id
		}
		id, ok := spelled[text]
		if !ok {
			id = b.tokens + int32(len(b.extra))
			spelled[text] = id
			b.extra = append(b.extra, string(bl.decode(nil, text)))
		}
		return id
	}
	for i := range b.byteIDs {
		b.byteIDs[i] = v.find(bl.spelling[i])
	}
	for rank, merge := range merges {
		space := -1
		if merge != "" {
			space = strings.IndexByte(merge[1:], ' ') + 1
		}
		if space <= 0 {
			return nil, fmt.Errorf("tokenizer.ggml.merges[%d]: %q is not two symbols with a space between", rank, merge)
		}
		left, right := merge[:space], merge[space+1:]
		b.pairs.add(symbol(left), symbol(right), uint32(rank), symbol(left+right))
	}
	ids := make(map[string]int32, len(v.texts))
	for id := range b.tokens {
		if v.has(id, attrNormal|attrUnused) {
			ids[string(bl.decode(nil, v.texts[id]))] = id
		}
	}
	b.words = newWordIndex(ids, len(v.texts))
	if rules.wholeWords {
		b.words.allReached()
	}
	return b, nil
}

// appendText appends the ids of a fragment without special tokens.
func (b *bpe) appendText(dst []int32, text string, m *merger) []int32 {
	for pos := 0; pos < len(text); {
		end := b.scan.next(text, pos)
		dst = b.appendWord(dst, text[pos:end], m)
		pos = end
	}
	return dst
}

// appendWord appends the ids of one word.
func (b *bpe) appendWord(dst []int32, word string, m *merger) []int32 {
	id, known, reached := b.words.find(word)
	if reached {
		return append(dst, id)
	}
	m.symbols = m.symbols[:0]
	for i := range len(word) {
		m.add(i, i+1, b.byteIDs[word[i]])
	}
	m.merge(word, b)
	if id != None && !known {
		b.words.learn(id, m.symbols[0].id == id && m.symbols[0].next < 0)
	}
	for i := int32(0); i >= 0; i = m.symbols[i].next {
		dst = b.appendSymbol(dst, m.symbols[i].id)
	}
	return dst
}

// appendSymbol appends a symbol's token, or the tokens of its bytes if it is none. A byte the vocabulary has no token
// for is dropped: there is no id that could stand for it.
func (b *bpe) appendSymbol(dst []int32, id int32) []int32 {
	if id < b.tokens {
		if id != None {
			dst = append(dst, id)
		}
		return dst
	}
	text := b.extra[id-b.tokens]
	for i := range len(text) {
		if id := b.byteIDs[text[i]]; id != None {
			dst = append(dst, id)
		}
	}
	return dst
}

// rank implements pairRanker by the merge list.
func (b *bpe) rank(_ string, left, right *symbol) (uint32, int32) {
	return b.pairs.find(left.id, right.id)
}
