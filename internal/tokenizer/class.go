package tokenizer

import (
	"sync"
	"unicode/utf8"
)

// class is what the pre-tokenizers' patterns ask of a character.
type class uint8

// The classes are disjoint. Symbols, punctuation, control and unassigned code points are classOther, and so is a byte
// that is not UTF-8, which the scanners treat like U+FFFD.
const (
	classOther  class = iota
	classLetter       // \p{L}
	classNumber       // \p{N}
	classMark         // \p{M}
	classSpace        // \s, the property White_Space
	classEnd          // past the end of the text
)

// classTable maps code points to classes in two steps, a page of 256 code points at a time. Equal pages are one.
type classTable struct {
	page [(utf8.MaxRune + 1) >> 8]uint8
	data [][256]class
}

// newClassTable lays the ranges of unicode_tables.go out as pages.
func newClassTable() *classTable {
	flat := make([]class, utf8.MaxRune+1)
	for _, set := range []struct {
		class  class
		ranges []rune
	}{
		{classLetter, letterRanges}, {classNumber, numberRanges}, {classMark, markRanges}, {classSpace, spaceRanges},
	} {
		for i := 0; i < len(set.ranges); i += 2 {
			for r := set.ranges[i]; r <= set.ranges[i+1]; r++ {
				flat[r] = set.class
			}
		}
	}
	t := &classTable{}
	seen := map[[256]class]uint8{}
	for p := range t.page {
		page := [256]class(flat[p<<8:])
		at, ok := seen[page]
		if !ok {
			at = uint8(len(t.data))
			seen[page] = at
			t.data = append(t.data, page)
		}
		t.page[p] = at
	}
	return t
}

// sharedClasses builds the table once a process, when the first tokenizer is made.
var sharedClasses = sync.OnceValue(newClassTable)

// of returns the class of a code point.
func (t *classTable) of(r rune) class { return t.data[t.page[r>>8]][r&0xff] }

// at decodes the character at text[pos:]: its code point, class and length. Past the end it is 0, classEnd, 0.
func (t *classTable) at(text string, pos int) (r rune, c class, size int) {
	if pos >= len(text) {
		return 0, classEnd, 0
	}
	if b := text[pos]; b < utf8.RuneSelf {
		return rune(b), t.data[0][b], 1 // page 0 is the first page seen
	}
	r, size = utf8.DecodeRuneInString(text[pos:])
	return r, t.of(r), size
}
