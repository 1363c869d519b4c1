package model

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/model/modeltest"
	"github.com/quire-ai/quire/internal/tensor"
)

// TestCacheGroups holds how layers are cut into groups: published Gemma 3 sizes, and what has no windows to speak of.
func TestCacheGroups(t *testing.T) {
	gemma := func(layers int) Config { return Config{Layers: layers, Window: 512, globalEvery: 6} }
	for _, c := range []struct {
		name     string
		config   Config
		maxLen   int
		whole    bool
		places   int
		full     []int // layers of each group that keeps the whole context
		windowed []int // layers of each other group
	}{
		{"gemma 3 270m", gemma(18), 32768, false, 3, []int{3}, []int{3, 3, 3, 3, 3}},
		{"gemma 3 1b", gemma(26), 32768, false, 4, []int{4}, []int{4, 4, 4, 4, 4, 2}},
		{"gemma 3 4b", gemma(34), 131072, false, 5, []int{5}, []int{5, 5, 5, 5, 5, 4}},
		{"gemma 3 12b", gemma(48), 131072, false, 8, []int{8}, []int{8, 8, 8, 8, 8}},
		{"gemma 3 27b", gemma(62), 131072, false, 10, []int{10}, []int{10, 10, 10, 10, 10, 2}},
		{"one layer left", gemma(7), 1024, false, 1, []int{1}, []int{1, 1, 1, 1, 1, 1}},
		{"many windows for one", Config{Layers: 30, Window: 16, globalEvery: 30}, 64, false, 5, []int{1}, []int{5, 5, 5, 5, 5, 4}},
		{"all windowed", Config{Layers: 32, Window: 2047}, 4096, false, 32, nil, []int{32}},
		{"no windows", Config{Layers: 30}, 4096, false, 30, []int{30}, nil},
		{"windows longer than the model", gemma(18), 512, false, 18, []int{18}, nil},
		{"not wanted", gemma(18), 32768, true, 18, []int{18}, nil},
	} {
		groups, places := cacheGroups(&c.config, c.maxLen, c.whole)
		var full, windowed []int
		seen := map[int]bool{}
		for _, g := range groups {
			if g.Window == 0 {
				full = append(full, len(g.Layers))
			} else {
				windowed = append(windowed, len(g.Layers))
			}
			for _, layer := range g.Layers {
				if seen[layer] || g.Window > 0 && !c.config.Windowed(layer) {
					t.Errorf("%s: layer %d is in a second group, or its group has a window of %d", c.name, layer, g.Window)
				}
				seen[layer] = true
			}
		}
		if places != c.places || !reflect.DeepEqual(full, c.full) || !reflect.DeepEqual(windowed, c.windowed) || len(seen) != c.config.Layers {
			t.Errorf("%s: groups of %v and windowed %v layers, %d places; want %v, %v, %d",
				c.name, full, windowed, places, c.full, c.windowed, c.places)
		}
	}
}

// leave gives the blocks left of the windows to somebody else once pos tokens are computed: what was in them becomes NaN,
// and the null block, NaN as well, stands in the tables.
func (r *machine) leave(pos int) {
	bs := r.kv.Shape().BlockSize
	spoil := func(block int32) {
		memory := r.kv.Block(block)
		for i := 0; i < len(memory); i += 2 {
			memory[i], memory[i+1] = 0xff, 0xff
		}
	}
	spoil(0)
	for g, group := range r.m.CacheGroups {
		if group.Window == 0 {
			continue
		}
		for i := range max(0, pos-group.Window+1) / bs {
			spoil(r.tables[g][i])
			r.tables[g][i] = 0
		}
	}
}

// TestNothingLeftOfTheWindowIsRead: logits are those of a model that keeps the whole context, bit for bit, though all
// blocks left of the windows hold NaN, for windows that end anywhere in a block, in one row and in chunks, on each level.
func TestNothingLeftOfTheWindowIsRead(t *testing.T) {
	ids := randomIDs(150)
	for _, spec := range []modeltest.Spec{
		{Arch: "gemma3", Layers: 7, Window: 20, Type: tensor.Q8_0, Hidden: 32, FFN: 64},
		{Arch: "gemma3", Layers: 4, Window: 33, KVHeads: 1, Keys: map[string]any{"attention.sliding_window_pattern": uint32(3)}},
		{Arch: "phi3", Window: 17},
		{Arch: "llama", Window: 1, Layers: 3},
	} {
		f := open(t, modeltest.Write(t, spec))
		want := newMachine(t, f, setup{level: fastest(), whole: true}).run(t, ids, 64)
		for _, level := range cpu.Levels() {
			for _, o := range []setup{{blockSize: 8}, {blockSize: 16, threads: 2}, {blockSize: 32}} {
				for _, chunk := range []int{1, 7, 64} {
					if level == 0 && chunk == 1 {
						continue // slow, and the same code
					}
					o.level = level
					t.Run(fmt.Sprintf("%s-w%d-%v-bs%d-chunk%d", spec.Arch, spec.Window, level, o.blockSize, chunk), func(t *testing.T) {
						m := newMachine(t, f, o)
						if spec.Arch == "gemma3" && len(m.m.CacheGroups) < 2 {
							t.Fatal("the model has one cache group")
						}
						var got [][]float32
						for from := 0; from < len(ids); from += chunk {
							m.leave(from)
							rows, err := m.step(ids[from:min(from+chunk, len(ids))], from, true)
							if err != nil {
								t.Fatal(err)
							}
							got = append(got, rows...)
						}
						if !reflect.DeepEqual(got, want) {
							t.Error("logits differ from those of a model that keeps the whole context")
						}
					})
				}
			}
		}
	}
}
