package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// letterPairs joins any two stretches of text by a table, and counts how often it is asked.
type letterPairs struct {
	ranks map[string]uint32
	asked int
}

func (p *letterPairs) rank(word string, left, right *symbol) (uint32, int32) {
	p.asked++
	if rank, ok := p.ranks[word[left.start:right.end]]; ok {
		return rank, 1
	}
	return noRank, None
}

// split merges word by the given number of symbols at which the heap takes over.
func (p *letterPairs) split(word string, long bool) []string {
	m := &merger{}
	for i := range len(word) {
		m.add(i, i+1, 0)
	}
	m.symbols[len(m.symbols)-1].next = -1
	for i := range m.symbols {
		m.setRank(word, int32(i), p)
	}
	if long {
		m.mergeLong(word, p)
	} else {
		m.mergeShort(word, p)
	}
	var parts []string
	for i := int32(0); i >= 0; i = m.symbols[i].next {
		parts = append(parts, word[m.symbols[i].start:m.symbols[i].end])
	}
	return parts
}

// splitNaive is the definition: join the leftmost pair of the lowest rank until there is none.
func (p *letterPairs) splitNaive(word string) []string {
	parts := make([]string, len(word))
	for i := range parts {
		parts[i] = word[i : i+1]
	}
	for {
		best, rank := -1, uint32(noRank)
		for i := range len(parts) - 1 {
			if r, ok := p.ranks[parts[i]+parts[i+1]]; ok && r < rank {
				best, rank = i, r
			}
		}
		if best < 0 {
			return parts
		}
		parts[best] += parts[best+1]
		parts = slices.Delete(parts, best+1, best+2)
	}
}

func randomWord(r *rand.Rand, letters string, length int) string {
	word := make([]byte, length)
	for i := range word {
		word[i] = letters[r.IntN(len(letters))]
	}
	return string(word)
}

// TestMerge compares both ways of merging with the definition, with many equal ranks.
func TestMerge(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		p := &letterPairs{ranks: map[string]uint32{}}
		for range 1 + r.IntN(30) {
			p.ranks[randomWord(r, "ab", 2+r.IntN(5))] = uint32(r.IntN(12))
		}
		word := randomWord(r, "abb", 1+r.IntN(60))
		want := p.splitNaive(word)
		if got := p.split(word, false); !slices.Equal(got, want) {
			t.Fatalf("short merge of %s with %v\n got %q\nwant %q", word, p.ranks, got, want)
		}
		if got := p.split(word, true); !slices.Equal(got, want) {
			t.Fatalf("long merge of %s with %v\n got %q\nwant %q", word, p.ranks, got, want)
		}
	}
}

// TestMergeLookups holds the work on a long word to what is needed: one lookup for each pair, two for each join.
func TestMergeLookups(t *testing.T) {
	p := &letterPairs{ranks: map[string]uint32{"aa": 1, "aaaa": 0, "aaaaaaaa": 2}}
	const n = 1 << 16
	parts := p.split(string(slices.Repeat([]byte("a"), n)), true)
	if len(parts) != n/8 {
		t.Errorf("%d parts, want %d", len(parts), n/8)
	}
	if p.asked > 3*n {
		t.Errorf("%d lookups for %d symbols, want at most 3 each", p.asked, n)
	}
}

func TestHeap(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		values := make([]uint64, r.IntN(50))
		for i := range values {
			values[i] = r.Uint64N(20)
		}
		half := len(values) / 2
		heap := slices.Clone(values[:half])
		heapify(heap)
		for _, v := range values[half:] {
			heap = pushHeap(heap, v)
		}
		var got []uint64
		for len(heap) > 0 {
			var v uint64
			v, heap = popHeap(heap)
			got = append(got, v)
		}
		slices.Sort(values)
		if !slices.Equal(got, values) {
			t.Fatalf("heap gives %v, want %v", got, values)
		}
	}
}

// BenchmarkMergeShort shows where the heap begins to pay: see shortWord.
func BenchmarkMergeShort(b *testing.B) {
	tok := testVocabulary(b, "qwen2")
	model := tok.model.(*bpe)
	for _, length := range []int{8, 16, 32, 40, 64, 128} {
		word := randomWord(rand.New(rand.NewPCG(1, 0)), "etaoinshr", length)
		for _, long := range []bool{false, true} {
			b.Run(map[bool]string{false: "scan", true: "heap"}[long]+"/"+strconv.Itoa(length), func(b *testing.B) {
				m := &merger{}
				for b.Loop() {
					m.symbols = m.symbols[:0]
					for i := range len(word) {
						m.add(i, i+1, model.byteIDs[word[i]])
					}
					m.symbols[len(m.symbols)-1].next = -1
					for i := range m.symbols {
						m.setRank(word, int32(i), model)
					}
					if long {
						m.mergeLong(word, model)
					} else {
						m.mergeShort(word, model)
					}
				}
			})
		}
	}
}
