package tokenizer

import "unicode/utf8"

// casedScanner follows the patterns of GPT-4o and Mistral's Tekken, which begin a new word where lower case ends, so that
// "HelloWorld" is two words. Upper and lower case are told apart in ASCII only, and any other letter is both, as in
// llama.cpp. With U for letters that are not a-z and L for letters that are not A-Z:
//
//	[^\r\n\p{L}\p{N}]?U*L+E?|[^\r\n\p{L}\p{N}]?U+L*E?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// E are the English endings ('s, 't, …); Tekken has none, and numbers of one character.
type casedScanner struct {
	rest    llama3Scanner // all but words
	endings bool
}

func (s casedScanner) next(text string, pos int) int {
	r, c, size := s.rest.classes.at(text, pos)
	start := pos
	if c != classLetter {
		_, following, _ := s.rest.classes.at(text, pos+size)
		if c == classNumber || r == '\r' || r == '\n' || following != classLetter {
			return s.rest.nextOther(text, pos)
		}
		start += size
	}
	end := s.word(text, start)
	if s.endings && end < len(text) && text[end] == '\'' {
		if n := contraction(text[end+1:], true); n > 0 {
			end += 1 + n
		}
	}
	return end
}

// word ends the word whose first letter is at pos: U*L+, and where no L follows the longest U*, as much of it as ends with
// an L; only where there is none, U+.
func (s casedScanner) word(text string, pos int) int {
	lastBoth := 0 // end of the last letter in the run of U that is an L too
	for {
		r, c, size := s.rest.classes.at(text, pos)
		if c != classLetter || 'a' <= r && r <= 'z' {
			break
		}
		pos += size
		if r >= utf8.RuneSelf {
			lastBoth = pos
		}
	}
	end := pos
	for {
		r, c, size := s.rest.classes.at(text, end)
		if c != classLetter || 'A' <= r && r <= 'Z' {
			break
		}
		end += size
	}
	if end == pos && lastBoth > 0 {
		return lastBoth
	}
	return end
}
