package tokenizer

import "unicode/utf8"

// Detokenizer turns a stream of ids into text, whole characters at a time: the bytes of a character that is not complete
// yet are held back until it is. Bytes that cannot become a character are replaced by U+FFFD, one for each longest
// beginning of a character among them, which is what Unicode recommends and Python and Rust do.
//
// Push is called for each id in turn, then Flush once. The texts returned, joined, are Decode of all ids. A Detokenizer
// belongs to one goroutine.
type Detokenizer struct {
	t           *Tokenizer
	skipSpecial bool
	pending     []byte // bytes not returned yet: the beginning of one character, between calls
	text        []byte // scratch
}

// NewDetokenizer begins a stream. With skipSpecial, control and unknown tokens give no text.
func (t *Tokenizer) NewDetokenizer(skipSpecial bool) *Detokenizer {
	return &Detokenizer{t: t, skipSpecial: skipSpecial}
}

// Push takes the next id and returns the text that is complete now, which may be empty.
func (d *Detokenizer) Push(id int32) string {
	if d.skipSpecial && d.t.IsSpecial(id) {
		return ""
	}
	d.pending = append(d.pending, d.t.v.piece(id)...)
	if len(d.pending) == 0 {
		return ""
	}
	return d.take(false)
}

// Flush ends the stream and returns what was held back, as U+FFFD. After it the Detokenizer is as new.
func (d *Detokenizer) Flush() string { return d.take(true) }

// take moves whole characters from pending to the result; at the end of the stream everything is whole.
func (d *Detokenizer) take(end bool) string {
	d.text = d.text[:0]
	p := d.pending
	for len(p) > 0 {
		if !end && !utf8.FullRune(p) {
			break
		}
		r, size := utf8.DecodeRune(p)
		if r == utf8.RuneError && size <= 1 {
			size = brokenLen(p)
		}
		d.text = utf8.AppendRune(d.text, r)
		p = p[size:]
	}
	d.pending = append(d.pending[:0], p...)
	return string(d.text)
}

// brokenLen returns how many bytes of p, which does not begin with a character, one U+FFFD stands for: the longest part
// that some character begins with, at least one byte.
func brokenLen(p []byte) int {
	n := 1
	for n < len(p) && !utf8.FullRune(p[:n+1]) {
		n++
	}
	return n
}
