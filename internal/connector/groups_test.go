package connector

import (
	"math/rand/v2"
	"testing"

	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/connector/ram"
	"github.com/quire-ai/quire/kv"
)

// TestReach compares reach with trying every length: on tiers that hold some of the blocks, for some groups.
func TestReach(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const bs = 4
	hashes := make([]kv.Hash, 12)
	for i := range hashes {
		hashes[i] = kv.Hash{byte(i), 1}
	}
	for _, groups := range [][]kv.Group{{{}}, {{Window: 9}}, {{}, {Window: 1}}, {{}, {Window: 6}, {Window: 6}}, {{}, {}, {Window: 17}}} {
		found := map[int]bool{}
		for range 400 {
			cache, err := ram.New(100, 1)
			if err != nil {
				t.Fatal(err)
			}
			c := &Chain{cfg: Config{BlockSize: bs, Groups: groups, Format: chunk.Format{Blocks: 1}}, ram: cache}
			for g := range groups {
				for i := range hashes {
					if random.IntN(5) > 0 {
						cache.Put(&hashes[i], g, []byte{1})
					}
				}
			}
			first, last := random.IntN(4), 4+random.IntN(9)
			want := first
			for n := first; n <= last; n++ {
				spans, blocks := c.spans(nil, first, n), 0
				for _, s := range spans {
					blocks += max(0, s.to-s.from)
				}
				if parts := c.route(nil, hashes, spans); len(parts) == blocks {
					want = n
				}
			}
			if got := c.reach(hashes, first, last); got != want {
				t.Errorf("groups %v: blocks from %d to %d of at most %d, want %d", groups, first, got, last, want)
			}
			found[want] = true
			if err := cache.Close(); err != nil {
				t.Error(err)
			}
		}
		if len(found) < 6 {
			t.Errorf("groups %v: the cases are all alike: %v", groups, found)
		}
	}
}
