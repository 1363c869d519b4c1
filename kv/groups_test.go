package kv

import "testing"

// TestMostBlocks runs sequences of every length in chunks of every size and counts the blocks they hold at once: never more
// than MostBlocks says, and with the largest chunks at most one a windowed group fewer.
func TestMostBlocks(t *testing.T) {
	for _, groups := range [][]Group{nil, {{Window: 5}}, {{}, {Window: 9}}, {{}, {Window: 1}, {Window: 4}}} {
		windowed := 0
		for _, g := range groups {
			windowed += min(g.Window, 1)
		}
		for _, bs := range []int{1, 4} {
			for length := 1; length < 40; length++ {
				cfg := Config{Blocks: 200, BlockSize: bs, Groups: groups, MaxInFlight: 6, MaxTokens: 39}
				bound, most := cfg.MostBlocks(length), 0
				for first := 1; first <= 6; first++ { // the first chunk shifts the others
					c := NewCache(cfg)
					var table Table
					for computed, n := 0, first; computed < length; computed, n = computed+n, 6 {
						c.Trim(&table, computed)
						c.Grow(&table, min(computed+n, length))
						most = max(most, c.pool.Usable()-c.pool.Free())
						if !c.Reaches(&table, computed) || windowed > 0 && computed > 20 && c.Reaches(&table, computed-20) {
							t.Fatalf("groups %v, block size %d: Reaches is wrong at %d of %d tokens", groups, bs, computed, length)
						}
					}
				}
				if most > bound || most < bound-windowed {
					t.Errorf("groups %v, block size %d: %d tokens hold %d blocks at most, MostBlocks says %d", groups, bs, length, most, bound)
				}
			}
		}
	}
}
