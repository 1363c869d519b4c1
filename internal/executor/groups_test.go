package executor

import (
	"fmt"
	"testing"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/model/modeltest"
	"github.com/quire-ai/quire/sched"
)

// windowedModels have full and windowed layers that make groups of equal size, groups with a place to spare, and windowed
// layers only.
func windowedModels() map[string]modeltest.Spec {
	return map[string]modeltest.Spec{
		"1 full, 5 windowed": {Arch: "gemma3", Type: quantised, Hidden: 32, FFN: 64, Layers: 6, Window: 20},
		"2 full, 9 windowed": {
			Arch: "gemma3", Type: quantised, Hidden: 32, FFN: 64, Layers: 11, Window: 33, KVHeads: 1,
			Keys: map[string]any{"attention.sliding_window_pattern": uint32(4)},
		},
		"all windowed": {Arch: "phi3", Type: quantised, Hidden: 32, FFN: 64, Window: 17},
	}
}

// TestGroupsChangeNoBit: a model whose windowed layers give blocks back gives the tokens and log probabilities of one that
// keeps the whole context, for every block size, in chunks, in a batch, preempted, with prefix hits; and, where the cache is
// off, with NaN in every block that nobody holds, the null block included.
func TestGroupsChangeNoBit(t *testing.T) {
	levels := cpu.Levels()
	fast := levels[len(levels)-1]
	for name, spec := range windowedModels() {
		path := modeltest.Write(t, spec)
		want := map[sched.RequestID]*run{}
		for _, r := range work() {
			s := newServer(t, path, setup{level: fast, noCache: true, whole: true})
			s.add(r)
			s.drain()
			want[r.ID] = r
		}
		for _, o := range []setup{
			{level: fast},
			{level: fast, blockSize: 8, budget: 7, threads: 2},
			{level: fast, blockSize: 8, budget: 64, noCache: true, poison: true},
			{level: fast, budget: 33, threads: 2, noCache: true, poison: true},
			{level: fast, blockSize: 32, budget: 48, noCache: true, poison: true},
			{level: fast, blocks: 9, budget: 48, threads: 2},
			{level: fast, blocks: 9, budget: 48, noCache: true, poison: true},
		} {
			t.Run(fmt.Sprintf("%s/%v", name, o), func(t *testing.T) {
				s := newServer(t, path, o)
				if len(s.ex.cfg.Model.CacheGroups) == 1 && spec.Arch == "gemma3" {
					t.Fatal("the model has one cache group")
				}
				for i, r := range work() {
					s.add(r)
					if i%3 == 2 {
						s.once()
					}
				}
				s.drain()
				for id, r := range want {
					equal(t, s.runs[id], r)
				}
				if o.blocks == 9 && s.preemptions() == 0 {
					t.Error("nothing was preempted: the case is not the one it is meant to be")
				}
				if hits := s.sched.Stats().Prefix.Hit; !o.noCache && hits == 0 {
					t.Error("nothing came from the cache")
				}
				if st := s.sched.Stats(); st.FreeBlocks != st.UsableBlocks {
					t.Errorf("%d of %d blocks are free at the end", st.FreeBlocks, st.UsableBlocks)
				}
			})
		}
	}
}

// TestWindowsBoundMemory counts the blocks a request of 700 tokens holds in each step: those of its context in groups that
// see everything, those of the window and the step's chunk in the others.
func TestWindowsBoundMemory(t *testing.T) {
	for name, spec := range windowedModels() {
		for _, budget := range []int{64, 7} {
			s := newServer(t, modeltest.Write(t, spec), setup{level: cpu.Levels()[len(cpu.Levels())-1], budget: budget})
			const bs = 16
			r := randomRun(0, 680, 20)
			s.add(r)
			most := 0
			for from := 0; ; {
				p := s.sched.Schedule(0)
				if p.Idle() {
					break
				}
				to := from + p.TotalTokens
				want := 0
				for _, g := range s.ex.cfg.Model.CacheGroups {
					want += (to + bs - 1) / bs
					if g.Window > 0 {
						want -= max(0, from-g.Window+1) / bs
					}
				}
				st := s.sched.Stats()
				held := st.UsableBlocks - st.FreeBlocks
				if held != want {
					t.Fatalf("%s: tokens %d to %d are computed holding %d blocks, want %d", name, from, to, held, want)
				}
				most = max(most, held)
				out := []sched.StepOutput{}
				if p.Requests[0].Sample {
					out = append(out, sched.StepOutput{ID: r.ID, Tokens: []int32{5}})
				}
				s.sched.Apply(sched.StepDone{Step: p.Step, Outputs: out})
				from = to
			}
			bound, whole := 0, 0
			for _, g := range s.ex.cfg.Model.CacheGroups {
				whole += 700/bs + 1
				if g.Window > 0 {
					bound += (g.Window-1+budget+bs-1)/bs + 1
				} else {
					bound += 700/bs + 1
				}
			}
			t.Logf("%s, budget %d: %d blocks at most, %d without windows", name, budget, most, whole)
			if most > bound || most >= whole {
				t.Errorf("%s, budget %d: %d blocks are held, want at most %d", name, budget, most, bound)
			}
		}
	}
}
