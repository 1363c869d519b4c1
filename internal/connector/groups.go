package connector

import "github.com/quire-ai/quire/kv"

// key is the name under which stores hold a block of a cache group. The first group's is the block's hash. The number of any
// other is mixed into its last byte: that two hashes differ there alone is as unlikely as that they are equal.
func key(h *kv.Hash, group int) kv.Hash {
	k := *h
	k[len(k)-1] ^= byte(group)
	return k
}

// span is blocks [from, to) of a request in a cache group.
type span struct{ group, from, to int }

// spans appends what a load of the blocks [first, last) has to bring in each group: all of them, or those in the window behind
// the last.
func (c *Chain) spans(dst []span, first, last int) []span {
	for g, group := range c.cfg.Groups {
		dst = append(dst, span{g, max(first, group.Skipped(last*c.cfg.BlockSize, c.cfg.BlockSize)), last})
	}
	return dst
}

// whole tells whether any beginning of a load is of use by itself: without windows it is.
func (c *Chain) whole() bool { return len(c.cfg.Groups) == 1 && c.cfg.Groups[0].Window == 0 }

// reach returns the last n, at most last, for which the blocks [first, n) can be loaded in every group.
func (c *Chain) reach(hashes []kv.Hash, first, last int) int {
	n := last
	for g, group := range c.cfg.Groups {
		if group.Window == 0 {
			i := first
			for i < n {
				p, ok := c.locate(hashes, g, i, n)
				if !ok {
					break
				}
				i = p.to
			}
			n = i
		}
	}
	for shorter := true; shorter; { // a window may end where another's does not
		shorter = false
		for g, group := range c.cfg.Groups {
			if group.Window == 0 {
				continue
			}
			if m := c.reachWindow(hashes, g, first, n); m < n {
				n, shorter = m, true
			}
		}
	}
	return n
}

// reachWindow is reach in a windowed group: from the right, since only the window behind the last block has to be there.
func (c *Chain) reachWindow(hashes []kv.Hash, g, first, last int) int {
	bs := c.cfg.BlockSize
	for n, i := last, last; n > first; {
		if i--; i < max(first, c.cfg.Groups[g].Skipped(n*bs, bs)) {
			return n
		}
		if _, ok := c.locate(hashes, g, i, i+1); !ok {
			n = i // a window that reaches over the gap is of no use
		}
	}
	return first
}
