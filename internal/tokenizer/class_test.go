package tokenizer

import (
	"testing"
	"unicode"
)

// since151 are the letters that Unicode 15.1 added to 15.0 (CJK extension I).
func since151(r rune) bool { return 0x2ebf0 <= r && r <= 0x2ee5d }

// TestClassTables compares with the unicode package of the toolchain, which may be older or newer than the tables: a
// code point that it does not know yet, or that was assigned since, may differ.
func TestClassTables(t *testing.T) {
	table := newClassTable()
	newer := unicode.Version != "15.0.0"
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := classOther
		switch {
		case unicode.IsLetter(r) || since151(r):
			want = classLetter
		case unicode.IsNumber(r):
			want = classNumber
		case unicode.IsMark(r):
			want = classMark
		case unicode.IsSpace(r):
			want = classSpace
		}
		if got := table.of(r); got != want && (got != classOther || !newer) {
			t.Errorf("class of %U is %d, want %d", r, got, want)
		}
	}
}
