package executor

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/model"
	"github.com/quire-ai/quire/internal/model/modeltest"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/internal/tensor"
	"github.com/quire-ai/quire/sched"
)

const quantised = tensor.Q8_0

// work is the load of the equality tests: prompts around block borders, some sharing prefixes, sampled and greedy, with
// prompt log probabilities and without.
func work() []*run {
	sizes := []int{1, 7, 8, 15, 16, 17, 31, 33, 64, 90}
	var runs []*run
	for n, size := range sizes {
		runs = append(runs, randomRun(n, size, 12))
	}
	for n, size := range []int{40, 70} { // two that begin like the longest one
		r := randomRun(20+n, 5, 12)
		r.Prompt = append(runs[9].Prompt[:size:size], r.Prompt...)
		runs = append(runs, r)
	}
	return runs
}

// architectures are all, or under -short the one that has everything the others lack: windows, head norms, two ropes.
func architectures() []string {
	if testing.Short() {
		return []string{"gemma3"}
	}
	return model.Architectures()
}

// solo runs every request alone on a fresh server in one chunk: what the answers must be.
func solo(t *testing.T, path string) map[sched.RequestID]*run {
	t.Helper()
	want := map[sched.RequestID]*run{}
	for _, r := range work() {
		s := newServer(t, path, setup{noCache: true})
		s.add(r)
		s.drain()
		want[r.ID] = r
	}
	return want
}

func equal(t *testing.T, got, want *run) {
	t.Helper()
	if !reflect.DeepEqual(got.tokens, want.tokens) {
		t.Errorf("request %s: tokens %v; want %v", got.ID, got.tokens, want.tokens)
	}
	if !reflect.DeepEqual(got.prompt, want.prompt) {
		t.Errorf("request %s: prompt log probabilities %v; want %v", got.ID, got.prompt, want.prompt)
	}
	if got.err != want.err {
		t.Errorf("request %s: error %q; want %q", got.ID, got.err, want.err)
	}
}

// TestSameTokensWhateverTheSchedule is promise 2: the same request gives the same tokens and log probabilities, bit for
// bit, alone or in a batch, in one chunk or in chunks of 7, on 1, 2 or 3 threads, in blocks of 8, 16 or 32 tokens, with
// the prefix cache on or off, preempted or not, beside requests that are aborted, on every CPU level.
func TestSameTokensWhateverTheSchedule(t *testing.T) {
	levels := cpu.Levels()
	fast := levels[len(levels)-1]
	setups := []setup{
		{},
		{level: fast, threads: 2, budget: 7},
		{level: fast, threads: 3, budget: 64, blockSize: 8},
		{level: fast, threads: 2, budget: 33, blockSize: 32},
		{level: fast, threads: 2, blocks: 14, budget: 48}, // preempts
		{level: fast, threads: 2, blocks: 14, budget: 48, noCache: true},
	}
	for _, level := range levels[1:] {
		setups = append(setups, setup{level: level, threads: 2, budget: 48, blocks: 30, blockSize: 8})
	}
	for _, arch := range architectures() {
		path := tiny(t, arch)
		want := solo(t, path)
		for _, o := range setups {
			t.Run(arch+"-"+o.String(), func(t *testing.T) {
				s := newServer(t, path, o)
				for i, r := range work() {
					s.add(r)
					if i%3 == 2 { // the others join a batch on its way, in which one client leaves
						leaves := randomRun(30+i, 50, 40)
						s.add(leaves)
						s.once()
						s.once()
						s.abort(leaves.ID)
					}
				}
				s.drain()
				for id, r := range want {
					equal(t, s.runs[id], r)
				}
				if n := len(s.ex.known); n != 0 {
					t.Errorf("%d ended requests are still remembered", n)
				}
				if o.blocks == 14 && s.preemptions() == 0 {
					t.Error("nothing was preempted: the case is not the one it is meant to be")
				}
			})
		}
	}
}

// TestRightOnMissWrongOnHit_tenstorrent415 covers a known fault of other engines: a prompt answered rightly when
// computed whole and wrongly when its beginning came from the cache. For each architecture a prompt of 5 blocks and 3
// tokens is run cold, warm, and warm with 1, bs−1, bs and bs+1 new tokens, in one chunk and in chunks of 7.
func TestRightOnMissWrongOnHit_tenstorrent415(t *testing.T) {
	const bs = 16
	base := randomRun(0, 5*bs+3, 8).Prompt
	fast := cpu.Levels()[len(cpu.Levels())-1]
	for _, arch := range architectures() {
		path := tiny(t, arch)
		for _, more := range []int{0, 1, bs - 1, bs, bs + 1} {
			ask := func(id string) *run {
				r := randomRun(3, more+1, 8) // greedy, with log probabilities
				r.ID = sched.RequestID(id)
				r.Prompt = append(base[:len(base):len(base)], r.Prompt[:more]...)
				return r
			}
			cold := newServer(t, path, setup{level: fast, noCache: true})
			want := ask("cold")
			cold.add(want)
			cold.drain()
			for _, budget := range []int{512, 7} {
				t.Run(fmt.Sprintf("%s-%d-new-chunk-%d", arch, more, budget), func(t *testing.T) {
					s := newServer(t, path, setup{level: fast, budget: budget, threads: 2})
					first := randomRun(1, 1, 8)
					first.Prompt, first.params.PromptLogprobs = base, -1
					s.add(first)
					s.drain()
					warm := ask("warm")
					s.add(warm)
					s.drain()
					warm.ID = want.ID
					equal(t, warm, want)
					if hits := s.sched.Stats().Prefix.Hit; hits == 0 {
						t.Error("nothing came from the cache")
					}
				})
			}
		}
	}
}

// TestOneRowFails shows that a row whose logits are not finite, or which cannot be sampled, ends its own request only.
func TestOneRowFails(t *testing.T) {
	path := modeltest.Write(t, modeltest.Spec{Arch: "llama", Tied: true})
	s := newServer(t, path, setup{})
	good, masked := randomRun(0, 9, 4), randomRun(2, 9, 4)
	masked.params.AllowedTokenIDs = []int32{7}
	masked.params.MinTokens, masked.params.StopIDs = 3, []int32{7}
	bad := randomRun(6, 9, 4)
	bad.Prompt[4] = 288 // one beyond the vocabulary
	for _, r := range []*run{good, masked, bad} {
		s.add(r)
	}
	s.drain()
	alone := newServer(t, path, setup{})
	want := randomRun(0, 9, 4)
	alone.add(want)
	alone.drain()
	equal(t, good, want)
	if masked.err == "" || bad.err == "" || len(masked.tokens)+len(bad.tokens) > 0 {
		t.Errorf("errors %q and %q, tokens %v and %v; want two errors and no token", masked.err, bad.err, masked.tokens, bad.tokens)
	}
}

// TestNotANumberEndsOneRequest feeds a model in which one token's embedding is infinite.
func TestNotANumberEndsOneRequest(t *testing.T) {
	path := modeltest.Write(t, modeltest.Spec{Arch: "llama", Poison: 5})
	s := newServer(t, path, setup{})
	good, bad := randomRun(0, 40, 6), randomRun(3, 40, 6)
	for i := range good.Prompt {
		good.Prompt[i] = 10 + good.Prompt[i]%200
		bad.Prompt[i] = 10 + bad.Prompt[i]%200
	}
	bad.Prompt[20] = 5
	s.add(good)
	s.add(bad)
	s.drain()
	if good.err != "" || len(good.tokens) != 6 {
		t.Errorf("the good request has error %q and %d tokens; want none and 6", good.err, len(good.tokens))
	}
	if bad.err == "" {
		t.Errorf("the bad request has tokens %v; want an error", bad.tokens)
	}
	for _, tok := range good.tokens {
		if math.IsNaN(float64(tok.Logprob)) {
			t.Errorf("log probability of %d is NaN", tok.ID)
		}
	}
}

// TestStepAllocatesNothing counts the allocations of a decode step in the steady state.
func TestStepAllocatesNothing(t *testing.T) {
	s := newServer(t, tiny(t, "gemma3"), setup{threads: 2})
	for n := range 5 {
		r := randomRun(n, 30, 300)
		r.params = sample.Default()
		r.params.Seed = uint64(n)
		s.add(r)
	}
	for range 10 {
		s.once()
	}
	p := s.sched.Schedule(0)
	if got := testing.AllocsPerRun(50, func() {
		// The same plan again: the cells of the last position are written again with what they hold. The samplers
		// insist on their position, so the rows are computed and not sampled.
		for i := range p.Requests {
			p.Requests[i].Sample = false
			p.Requests[i].Kind = sched.KindRunning
			p.Requests[i].Blocks = nil
		}
		if _, err := s.ex.Execute(p); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("a step allocates %v times, want 0", got)
	}
}
