package tokenizer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// spaceMark stands for a space in SentencePiece vocabularies.
const spaceMark = "▁"

// spm is SentencePiece-style BPE: two neighbours join if together they are a token, the one with the highest score
// first. Characters that end up in no token are spelled in byte tokens.
type spm struct {
	v       *vocab
	words   *wordIndex
	ranks   []uint32 // per token: 0 for the highest score; equal scores have equal ranks; noRank if no text makes it
	longest int      // length of the longest token
	byteIDs [256]int32
	unknown int32

	// short holds the tokens of one and two ASCII characters, which are half of all that merging asks for: see shortKey.
	short []int32

	// joined holds the characters that some token has right before a spaceMark. After any other character no token
	// reaches across the mark, so that text may be cut there without changing the result.
	joined map[string]struct{}
}

func newSPM(v *vocab, scores []float64, unknown int32) (*spm, error) {
	if len(scores) < len(v.texts) {
		return nil, fmt.Errorf("tokenizer.ggml.scores: %d scores for %d tokens", len(scores), len(v.texts))
	}
	v.setPieces(func(dst []byte, text string) []byte {
		return append(dst, strings.ReplaceAll(text, spaceMark, " ")...)
	})
	s := &spm{v: v, unknown: unknown, joined: map[string]struct{}{}, ranks: rankScores(scores[:len(v.texts)])}
	for id, text := range v.texts {
		if v.has(int32(id), attrControl|attrUnknown|attrByte) {
			s.ranks[id] = noRank
			continue
		}
		s.longest = max(s.longest, len(text))
		s.noteJoined(text)
	}
	s.words = newWordIndex(v.ids, len(v.texts))
	s.setShort()
	for b := range s.byteIDs {
		s.byteIDs[b] = v.find(fmt.Sprintf("<0x%02X>", b))
		if s.byteIDs[b] == None {
			s.byteIDs[b] = v.find(string([]byte{byte(b)}))
		}
	}
	return s, nil
}

// setShort fills the table of short tokens.
func (s *spm) setShort() {
	s.short = make([]int32, 1<<14)
	for i := range s.short {
		s.short[i] = None
	}
	for id, text := range s.v.texts {
		if key, ok := shortKey(text); ok && s.ranks[id] != noRank {
			s.short[key] = int32(id)
		}
	}
}

// shortKey is the place of a text of one or two ASCII characters, none of them NUL, in the table of short tokens.
func shortKey(text string) (int, bool) {
	switch len(text) {
	case 1:
		return int(text[0]), 0 < text[0] && text[0] < utf8.RuneSelf
	case 2:
		return int(text[0])<<7 | int(text[1]), 0 < text[0] && text[0] < utf8.RuneSelf && text[1] < utf8.RuneSelf
	}
	return 0, false
}

// rankScores turns scores into ranks, the highest score first.
func rankScores(scores []float64) []uint32 {
	order := make([]int32, len(scores))
	for i := range order {
		order[i] = int32(i)
	}
	descending := func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) }
	slices.SortFunc(order, descending)
	ranks := make([]uint32, len(scores))
	for i, id := range order {
		ranks[id] = uint32(i)
		if i > 0 && descending(order[i-1], id) == 0 {
			ranks[id] = ranks[order[i-1]]
		}
	}
	return ranks
}

// noteJoined adds the characters before space marks in a token's text.
func (s *spm) noteJoined(text string) {
	for at := 0; ; {
		i := strings.Index(text[at:], spaceMark)
		if i < 0 {
			return
		}
		at += i
		if at > 0 {
			s.joined[lastChar(text[:at])] = struct{}{}
		}
		at += len(spaceMark)
	}
}

// lastChar returns the last character of text, or its last byte if that is not UTF-8.
func lastChar(text string) string {
	_, size := utf8.DecodeLastRuneInString(text)
	return text[len(text)-size:]
}

// appendText appends the ids of a fragment without special tokens.
func (s *spm) appendText(dst []int32, text string, m *merger) []int32 {
	text = strings.ReplaceAll(text, " ", spaceMark)
	for len(text) > 0 {
		end := s.cut(text)
		dst = s.appendWord(dst, text[:end], m)
		text = text[end:]
	}
	return dst
}

// cut returns the first place where text may be cut, or its length.
func (s *spm) cut(text string) int {
	for at := 1; at < len(text); {
		i := strings.Index(text[at:], spaceMark)
		if i < 0 {
			break
		}
		at += i
		if _, ok := s.joined[lastChar(text[:at])]; !ok {
			return at
		}
		at += len(spaceMark)
	}
	return len(text)
}

// appendWord appends the ids of a stretch of text that is merged as one.
func (s *spm) appendWord(dst []int32, word string, m *merger) []int32 {
	id, known, reached := s.words.find(word)
	if reached {
		return append(dst, id)
	}
	m.symbols = m.symbols[:0]
	for i := 0; i < len(word); {
		end := min(i+charLen(word[i]), len(word))
		m.add(i, end, s.lookup(word[i:end]))
		i = end
	}
	m.merge(word, s)
	if id != None && !known {
		s.words.learn(id, m.symbols[0].id == id && m.symbols[0].next < 0)
	}
	for i := int32(0); i >= 0; i = m.symbols[i].next {
		dst = s.appendSymbol(dst, word, &m.symbols[i])
	}
	return dst
}

// appendSymbol appends a symbol's token, or the byte tokens of its text if it is none.
func (s *spm) appendSymbol(dst []int32, word string, sym *symbol) []int32 {
	if sym.id != None {
		return append(dst, sym.id)
	}
	for _, b := range []byte(word[sym.start:sym.end]) {
		if id := s.byteIDs[b]; id != None {
			dst = append(dst, id)
		} else if s.unknown != None {
			dst = append(dst, s.unknown)
		}
	}
	return dst
}

// lookup returns the token that the given text makes, or None.
func (s *spm) lookup(text string) int32 {
	if key, ok := shortKey(text); ok {
		return s.short[key]
	}
	if len(text) > s.longest {
		return None
	}
	if id, ok := s.words.ids[text]; ok && s.ranks[id] != noRank {
		return id
	}
	return None
}

// rank implements pairRanker by the scores.
func (s *spm) rank(word string, left, right *symbol) (uint32, int32) {
	id := s.lookup(word[left.start:right.end])
	if id == None {
		return noRank, None
	}
	return s.ranks[id], id
}

// charLen is the length of a character by its first byte alone: SentencePiece text is cut into characters before it is
// known to be UTF-8.
func charLen(first byte) int {
	switch {
	case first < 0xc0:
		return 1
	case first < 0xe0:
		return 2
	case first < 0xf0:
		return 3
	}
	return 4
}
