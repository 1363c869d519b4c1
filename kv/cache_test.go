package kv

import (
	"fmt"
	"slices"
	"testing"
)

// sequence is a request's side of the cache: its tokens, their hashes and its table.
type sequence struct {
	tokens []int32
	chain  Chain
	table  Table
}

func newSequence(c *Cache, tokens ...int32) *sequence {
	s := &sequence{tokens: tokens}
	c.Extend(&s.chain, tokens)
	return s
}

// fill admits a sequence: hits, then blocks for the rest, all registered.
func (s *sequence) fill(c *Cache) int {
	hit := c.Lookup(&s.chain, len(s.tokens)-1)
	n := hit.Tokens
	c.Attach(&s.table, hit, n, 0)
	c.Grow(&s.table, len(s.tokens))
	c.Register(&s.table, &s.chain, s.tokens)
	return n
}

func count(n int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = int32(i)
	}
	return t
}

func TestLookupFindsTheLongestPrefix(t *testing.T) {
	c := NewCache(Config{Blocks: 20, BlockSize: 4, Caching: true})
	first := newSequence(c, count(18)...)
	if n := first.fill(c); n != 0 {
		t.Errorf("an empty cache holds %d tokens; want 0", n)
	}
	for _, tc := range []struct {
		tokens int
		want   int
	}{
		{18, 16},
		{17, 16},
		{16, 12}, // the last token is always computed
		{5, 4},
		{4, 0},
		{1, 0},
	} {
		s := newSequence(c, count(tc.tokens)...)
		if hit := c.Lookup(&s.chain, tc.tokens-1); hit.Tokens != tc.want {
			t.Errorf("%d tokens: hit %d; want %d", tc.tokens, hit.Tokens, tc.want)
		}
	}
}

func TestNeedCountsHitsThatAreFree(t *testing.T) {
	c := NewCache(Config{Blocks: 9, BlockSize: 4, Caching: true})
	first := newSequence(c, count(16)...)
	first.fill(c)
	second := newSequence(c, count(20)...)
	need := func() int {
		hit := c.Lookup(&second.chain, len(second.tokens)-1)
		return c.Need(Demand{Table: &second.table, Hit: hit, Computed: hit.Tokens, Tokens: 20})
	}
	if got := need(); got != 1 {
		t.Errorf("need %d blocks while the prefix is in use; want 1", got)
	}
	c.Release(&first.table)
	if got := need(); got != 5 {
		t.Errorf("need %d blocks while the prefix is free; want 5: touching takes them off the free list", got)
	}
}

// A window gives back what lies left of it, and a hit needs only the window's blocks.
func TestWindow(t *testing.T) {
	c := NewCache(Config{Blocks: 40, BlockSize: 4, Caching: true, Groups: []Group{{}, {Window: 6}}})
	first := newSequence(c, count(24)...)
	first.fill(c)
	before := c.Pool().Free()
	c.Trim(&first.table, 24)
	// Tokens from 24−6+1 = 19 on are attended to: blocks 0 to 3 lie wholly left of it.
	if got := c.Pool().Free() - before; got != 4 {
		t.Errorf("a window of 6 over 24 tokens gives %d blocks back; want 4", got)
	}
	if got := first.table.Blocks(1, 0)[:4]; !slices.Equal(got, []BlockID{Null, Null, Null, Null}) {
		t.Errorf("table begins %v; want null blocks", got)
	}
	for b := range 4 { // the freed blocks are taken for something else
		c.Forget(BlockID(7 + b))
	}
	second := newSequence(c, count(25)...)
	if hit := c.Lookup(&second.chain, 24); hit.Tokens != 24 {
		t.Errorf("hit %d tokens; want 24: the window's two blocks are there, and all of the other group", hit.Tokens)
	}
	c.Forget(first.table.Blocks(1, 0)[5])
	if hit := c.Lookup(&second.chain, 24); hit.Tokens != 0 {
		t.Errorf("hit %d tokens without the last block of the window; want 0", hit.Tokens)
	}
}

func TestEvents(t *testing.T) {
	c := NewCache(Config{Blocks: 4, BlockSize: 4, Caching: true, Events: true})
	first := newSequence(c, count(9)...)
	first.fill(c)
	c.Release(&first.table)
	second := newSequence(c, 90, 91, 92, 93, 94, 95, 96, 97)
	second.fill(c)
	c.Release(&second.table)
	c.Reset()
	var got []string
	for _, e := range c.Events() {
		got = append(got, fmt.Sprintf("%v %d", e.Kind, len(e.Hashes)))
	}
	want := []string{"BlockStored 2", "BlockRemoved 1", "BlockStored 2", "AllBlocksCleared 0"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q; want %q", got, want)
	}
	if e := c.Events()[0]; e.HasParent || len(e.Tokens) != 8 || e.Hashes[0] != first.chain.Hashes[0] {
		t.Errorf("first event %+v; want the first 8 tokens, without a parent", e)
	}
}

// BenchmarkHashBlock stands for a token stream filling a block of 16; the prompt's blocks are hashed when it arrives.
func BenchmarkHashBlock(b *testing.B) {
	h := Hasher{Root: RootHash("0")}
	tokens := make([]int32, 16)
	for i := range tokens {
		tokens[i] = int32(1000 + 3131*i) // ids of a 50,000-token vocabulary, two or three bytes each
	}
	chain := Chain{Hashes: make([]Hash, 0, 1)}
	b.ReportAllocs()
	for b.Loop() {
		chain.Hashes = chain.Hashes[:0]
		chain.Extend(&h, tokens, 16)
	}
}

// BenchmarkLookup stands for a chat of 32k tokens whose prefix is all cached, in pools of two sizes.
func BenchmarkLookup(b *testing.B) {
	for _, blocks := range []int{3000, 100000} {
		b.Run(fmt.Sprintf("blocks=%d", blocks), func(b *testing.B) {
			c := NewCache(Config{Blocks: blocks, BlockSize: 16, Caching: true})
			s := newSequence(c, count(32768)...)
			s.fill(c)
			b.ReportAllocs()
			for b.Loop() {
				c.Lookup(&s.chain, len(s.tokens)-1)
			}
		})
	}
}
