package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
)

// TokenType is a token's kind, with the numbers of tokenizer.ggml.token_type.
type TokenType int32

// The kinds of tokens (GGUF specification, tokenizer.ggml.token_type).
const (
	TypeNormal      TokenType = 1 // text
	TypeUnknown     TokenType = 2 // stands for what the vocabulary cannot spell
	TypeControl     TokenType = 3 // steers the model, such as <|im_end|>; hidden unless asked for
	TypeUserDefined TokenType = 4 // text that is always kept whole, such as <tool_call>
	TypeUnused      TokenType = 5 // never trained
	TypeByte        TokenType = 6 // one byte, written <0x0A>
)

// attr is what the tokenizer does with a token: its type, corrected by what is known of well-known token texts.
type attr uint8

const (
	attrNormal attr = 1 << iota
	attrUnknown
	attrControl
	attrUserDefined
	attrUnused
	attrByte
	attrStripRight // swallows the white space that follows (Phi-3's added tokens)
)

// vocab is the table of tokens: text, kind and bytes of each id. Ids count from 0 without gaps.
type vocab struct {
	texts []string         // as in the file: byte-level or SentencePiece spelling, control tokens as they are
	attrs []attr           // one per token
	ids   map[string]int32 // text as in the file → id

	pieces  []byte   // the bytes of all tokens, one after another
	offsets []uint32 // pieces[offsets[id]:offsets[id+1]] are the bytes of token id
}

// newVocab checks the lists of the file against each other. Types may be nil: then all tokens are normal.
func newVocab(texts []string, types []TokenType) (*vocab, error) {
	if len(texts) == 0 {
		return nil, fmt.Errorf("tokenizer.ggml.tokens: empty vocabulary")
	}
	if types != nil && len(types) < len(texts) {
		return nil, fmt.Errorf("tokenizer.ggml.token_type: %d types for %d tokens", len(types), len(texts))
	}
	v := &vocab{
		texts: make([]string, len(texts)),
		attrs: make([]attr, len(texts)),
		ids:   make(map[string]int32, len(texts)),
	}
	for i, text := range texts {
		if text == "" {
			text = "[EMPTY_" + strconv.Itoa(i) + "]" // llama.cpp's name for it: an empty text would match everywhere
		}
		if first, ok := v.ids[text]; ok {
			return nil, fmt.Errorf("tokenizer.ggml.tokens: %q is the text of both token %d and token %d", text, first, i)
		}
		v.texts[i] = text
		v.ids[text] = int32(i)
		v.attrs[i] = attrNormal
		if types != nil {
			v.attrs[i] = attrOf(types[i])
		}
	}
	return v, nil
}

// attrOf is 0 for a type that is not in the specification: such a token has no text.
func attrOf(t TokenType) attr {
	switch t {
	case TypeNormal:
		return attrNormal
	case TypeUnknown:
		return attrUnknown
	case TypeControl:
		return attrControl
	case TypeUserDefined:
		return attrUserDefined
	case TypeUnused:
		return attrUnused
	case TypeByte:
		return attrByte
	}
	return 0
}

// has says whether token id has one of the attributes.
func (v *vocab) has(id int32, a attr) bool { return v.attrs[id]&a != 0 }

// find returns the id of a text as it is spelled in the file, or None.
func (v *vocab) find(text string) int32 {
	if id, ok := v.ids[text]; ok {
		return id
	}
	return None
}

// setPieces fills the bytes of all tokens; normal gives those of a normal token's text.
func (v *vocab) setPieces(normal func(dst []byte, text string) []byte) {
	v.offsets = make([]uint32, 1, len(v.texts)+1)
	for id, text := range v.texts {
		switch a := v.attrs[id]; {
		case a&(attrControl|attrUnknown|attrUserDefined) != 0:
			v.pieces = append(v.pieces, text...)
		case a&attrNormal != 0:
			v.pieces = normal(v.pieces, text)
		case a&attrByte != 0:
			if b, ok := parseByteToken(text); ok {
				v.pieces = append(v.pieces, b)
			}
		}
		v.offsets = append(v.offsets, uint32(len(v.pieces)))
	}
}

// piece returns the bytes of a token, a view that must not be written to.
func (v *vocab) piece(id int32) []byte {
	if id < 0 || int(id) >= len(v.texts) {
		return nil
	}
	from, to := v.offsets[id], v.offsets[id+1]
	return v.pieces[from:to:to]
}

// parseByteToken reads a byte token's text, such as <0x0A>.
func parseByteToken(text string) (byte, bool) {
	if len(text) != len("<0x0A>") || !strings.HasPrefix(text, "<0x") || text[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(text[3:5], 16, 8)
	return byte(b), err == nil
}
