package tokenizer

import "unicode/utf8"

// Byte-level vocabularies write each byte as a printable character (GPT-2, encoder.py, bytes_to_unicode): printable
// Latin-1 characters stand for themselves, the other 68 bytes, in order, for U+0100 and up. So a space is written Ġ.

// byteRunes gives the character of each byte.
func byteRunes() [256]rune {
	var runes [256]rune
	next := rune(256)
	for b := range rune(256) {
		if '!' <= b && b <= '~' || '¡' <= b && b <= '¬' || '®' <= b && b <= 'ÿ' {
			runes[b] = b
			continue
		}
		runes[b] = next
		next++
	}
	return runes
}

// byteLevel translates between bytes and their spelling.
type byteLevel struct {
	spelling [256]string // UTF-8 of the character that stands for the byte
	bytes    [324]int16  // character → byte; −1 for characters that stand for none
}

func newByteLevel() *byteLevel {
	bl := &byteLevel{}
	for i := range bl.bytes {
		bl.bytes[i] = -1
	}
	for b, r := range byteRunes() {
		bl.spelling[b] = string(r)
		bl.bytes[r] = int16(b)
	}
	return bl
}

// decode appends the bytes that text spells. Characters outside the alphabet, which no published vocabulary has in a
// normal token, stand for their own UTF-8 bytes.
func (bl *byteLevel) decode(dst []byte, text string) []byte {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if int(r) < len(bl.bytes) && bl.bytes[r] >= 0 {
			dst = append(dst, byte(bl.bytes[r]))
		} else {
			dst = append(dst, text[i:i+size]...)
		}
		i += size
	}
	return dst
}
