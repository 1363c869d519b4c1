package model

import "github.com/quire-ai/quire/internal/cpu"

// CacheGroup is layers that share one block table, since they keep the same tokens. A block of the pool holds the keys and
// values of one group's layers, whichever group it was given to (docs/decisions/0062-cache-groups.md).
type CacheGroup struct {
	// Window is how many tokens a layer of the group sees, the token itself included: what lies left of it need not be kept.
	// 0 means that all are seen.
	Window int
	Layers []int // the i-th has place i in the group's blocks; there are at most KVShape's Layers of them
}

// maxCacheGroups bounds the block tables of a request.
const maxCacheGroups = 8

// cacheGroups cuts the layers into groups, those that see everything first, and returns the most layers of a group. A
// model whose windows reach over maxLen tokens has one group, as any has that is to keep the whole context.
func cacheGroups(c *Config, maxLen int, wholeContext bool) (groups []CacheGroup, places int) {
	var full, windowed []int
	for i := range c.Layers {
		if c.Windowed(i) && c.Window < maxLen && !wholeContext {
			windowed = append(windowed, i)
		} else {
			full = append(full, i)
		}
	}
	places = groupSize(len(full), len(windowed))
	return append(cut(full, places, 0), cut(windowed, places, c.Window)...), places
}

// groupSize returns how many layers make a group. All groups are of one size, so that any block serves any group, and the
// last of either kind may have places to spare: first of all none should be spared by layers that keep the whole context,
// then as few as possible by those that keep a window; then there should be few groups.
func groupSize(full, windowed int) int {
	type cost struct{ full, windowed, groups int }
	var best cost
	size := 0
	for s := 1; s <= max(full, windowed); s++ {
		f, w := (full+s-1)/s, (windowed+s-1)/s
		c := cost{f*s - full, w*s - windowed, f + w}
		less := c.full < best.full || c.full == best.full &&
			(c.windowed < best.windowed || c.windowed == best.windowed && c.groups < best.groups)
		if c.groups <= maxCacheGroups && (size == 0 || less) {
			size, best = s, c
		}
	}
	return size
}

// cut splits layers into groups of a size.
func cut(layers []int, size, window int) []CacheGroup {
	var groups []CacheGroup
	for len(layers) > 0 {
		n := min(size, len(layers))
		groups = append(groups, CacheGroup{Window: window, Layers: layers[:n:n]})
		layers = layers[n:]
	}
	return groups
}

// place is where a layer's keys and values lie.
type place struct {
	group int
	layer int // of a block's
}

// setGroups notes the groups, and the place of each layer.
func (m *Model) setGroups(groups []CacheGroup, places int) {
	m.CacheGroups, m.groupLayers = groups, places
	m.places = make([]place, m.Layers)
	for g := range groups {
		for i, layer := range groups[g].Layers {
			m.places[layer] = place{group: g, layer: i}
		}
	}
}

// KVShape is the shape of a cache for this model: its Layers are those of one group.
func (m *Model) KVShape(blockSize int) cpu.KVShape {
	return cpu.KVShape{Layers: m.groupLayers, KVHeads: m.KVHeads, HeadDim: m.HeadDim, BlockSize: blockSize}
}
