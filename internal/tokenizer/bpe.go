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

	// replacement is U+FFFD in tokens. It stands for a byte that is in no UTF-8 text where the vocabulary has no token for
	// that byte, as SmolLM2's has none for 0xff.
	replacement []int32
}

func newBPE(v *vocab, merges []string, rules preRules) (*bpe, error) {
	if len(merges) == 0 {
		return nil, fmt.Errorf("tokenizer.ggml.merges: missing or empty, needed for tokenizer.ggml.model gpt2")
	}
	bl := newByteLevel()
	v.setPieces(bl.decode)
	b := &bpe{scan: rules.scan, tokens: int32(len(v.texts))}
	if err := b.setPairs(v, bl, merges); err != nil {
		return nil, err
	}
	ids := make(map[string]int32, len(v.texts))
	pieces := string(v.pieces) // one string that all keys are parts of
	for id := range b.tokens {
		if v.has(id, attrNormal) {
			ids[pieces[v.offsets[id]:v.offsets[id+1]]] = id
		}
	}
	b.words = newWordIndex(ids, len(v.texts))
	if rules.wholeWords {
		b.words.allReached()
	}
	b.replacement = b.appendText(nil, "\ufffd", &merger{})
	return b, nil
}

// setPairs reads the merge list, in which rank i is "left right" in the vocabulary's spelling, and gives the symbols that
// are no token their ids.
func (b *bpe) setPairs(v *vocab, bl *byteLevel, merges []string) error {
	b.pairs = newPairTable(len(merges))
	others := map[string]int32{}
	symbol := func(text string) int32 {
		if id, ok := v.ids[text]; ok {
			return id
		}
		id, ok := others[text]
		if !ok {
			id = b.tokens + int32(len(others))
			others[text] = id
		}
		return id
	}
	for rank, merge := range merges {
		space := 0
		if merge != "" {
			space = strings.IndexByte(merge[1:], ' ') + 1
		}
		if space == 0 {
			return fmt.Errorf("tokenizer.ggml.merges[%d]: %q is not two symbols with a space between", rank, merge)
		}
		left, right := merge[:space], merge[space+1:]
		joined, ok := v.ids[left+right] // the usual case, which needs no memory for the text
		if !ok {
			joined = symbol(left + right)
		}
		b.pairs.add(symbol(left), symbol(right), uint32(rank), joined)
	}
	for i, text := range bl.spelling {
		id, ok := others[text]
		if !ok {
			id = v.find(text)
		}
		b.byteIDs[i] = id
	}
	return nil
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
		s := &m.symbols[i]
		dst = b.appendSymbol(dst, s.id, word[s.start:s.end])
	}
	return dst
}

// isToken says whether a symbol is a token.
func (b *bpe) isToken(id int32) bool { return 0 <= id && id < b.tokens }

// appendSymbol appends a symbol's token, or the tokens of its bytes if it is none. A byte that the vocabulary has no
// token for is dropped, as llama.cpp and Hugging Face do, unless the text was not UTF-8 to begin with.
func (b *bpe) appendSymbol(dst []int32, id int32, text string) []int32 {
	if b.isToken(id) {
		return append(dst, id)
	}
	for i := range len(text) {
		switch id := b.byteIDs[text[i]]; {
		case b.isToken(id):
			dst = append(dst, id)
		case text[i] == 0xc0 || text[i] == 0xc1 || text[i] >= 0xf5: // in no UTF-8 text
			dst = append(dst, b.replacement...)
		}
	}
	return dst
}

// rank implements pairRanker by the merge list.
func (b *bpe) rank(_ string, left, right *symbol) (uint32, int32) {
	return b.pairs.find(left.id, right.id)
}
