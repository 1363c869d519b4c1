package kvevent_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/connector/ram"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/internal/kvevent"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

const blockSize = 4 // tokens

// machine is an engine over the toy, with host memory behind its pool, whose events are published.
type machine struct {
	t      *testing.T
	rng    *rand.Rand
	stream *kvevent.Stream
	engine *engine.Engine
	host   *ram.Cache
	hashes map[uint64]kv.Hash // by their names on the wire; written by the loop
	live   []*live
	fences uint64
}

// live is a request that somebody reads.
type live struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func newMachine(t *testing.T, seed uint64, cfg kvevent.Config) *machine {
	t.Helper()
	m := &machine{t: t, rng: rand.New(rand.NewPCG(seed, 0)), stream: open(t, cfg), hashes: map[uint64]kv.Hash{}}
	const blocks = 64
	toy := executortest.New(executortest.Options{Blocks: blocks, BlockSize: blockSize})
	var err error
	m.host, err = ram.New(int64(48*toy.BlockBytes()), toy.BlockBytes())
	if err != nil {
		t.Fatal(err)
	}
	chain, err := connector.New(connector.Config{
		Memory: toy, Format: chunk.Format{Blocks: 1, BlockBytes: toy.BlockBytes()}, RAM: m.host, BlockSize: blockSize, Events: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.engine = engine.New(engine.Config{
		Sched: sched.Config{Blocks: blocks, BlockSize: blockSize, MaxNumSeqs: 6, MaxNumBatchedTokens: 40, MaxModelLen: 200},
		Vocab: toy.Vocab(), LogInterval: -1, Connector: chain, Observer: engine.Observer{KVEvents: m.publish},
	}, toy)
	t.Cleanup(func() {
		m.waitAll()
		if err := m.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	m.stream.Begin(topic, nil)
	return m
}

// publish remembers hashes and passes on.
func (m *machine) publish(events []kv.Event) {
	for _, e := range events {
		for _, h := range e.Hashes {
			m.hashes[h.Wire()] = h
		}
	}
	m.stream.Publish(events)
}

// submit begins a request: a path in a tree of prompts, so that prefixes are shared, some of them under a salt.
func (m *machine) submit() {
	var prompt []int32
	for range 1 + m.rng.IntN(5) {
		branch := int32(m.rng.IntN(3))
		for range 1 + m.rng.IntN(4)*blockSize {
			prompt = append(prompt, 3*branch+int32(len(prompt))%3)
		}
	}
	params := sample.Default()
	params.Temperature = 0
	r := &engine.Request{Prompt: prompt, MaxTokens: 1 + m.rng.IntN(12), Sampling: params}
	if m.rng.IntN(6) == 0 {
		r.CacheSalt = "tenant" + strconv.Itoa(m.rng.IntN(2))
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	h, err := m.engine.Submit(ctx, r)
	if err != nil {
		m.t.Fatal(err)
	}
	l := &live{cancel: cancel, done: make(chan struct{})}
	m.live = append(m.live, l)
	go func() {
		defer close(l.done)
		defer cancel()
		for {
			if _, err := h.Next(context.Background()); err != nil {
				if !errors.Is(err, io.EOF) && ctx.Err() == nil {
					m.t.Error(err)
				}
				return
			}
		}
	}()
}

// wait reads the request that has been there longest to its end.
func (m *machine) wait() {
	<-m.live[0].done
	m.live = m.live[1:]
}

func (m *machine) waitAll() {
	for len(m.live) > 0 {
		m.wait()
	}
}

// operate does one thing that the world does to a server.
func (m *machine) operate() {
	switch n := m.rng.IntN(100); {
	case n < 60:
		m.submit()
		if len(m.live) > 12 {
			m.wait()
		}
	case n < 75 && len(m.live) > 0:
		m.live[m.rng.IntN(len(m.live))].cancel()
	case n < 76:
		_ = m.engine.ResetPrefixCache(m.t.Context(), m.rng.IntN(2) == 0) // refused while blocks are in use
	case len(m.live) > 0:
		m.wait()
	}
}

// pool returns what the pool itself says it holds, and a fence in the stream, a block like no other that stays until the next
// one: readers that know it know all that happened before.
func (m *machine) pool() (held map[uint64]bool, fence uint64) {
	m.t.Helper()
	m.waitAll()
	hashes, err := m.engine.CachedBlocks(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	held = map[uint64]bool{}
	for i := range hashes {
		held[hashes[i].Wire()] = true
	}
	m.fences++
	held[m.fences] = true
	m.stream.Publish([]kv.Event{stored(0, m.fences), removed(m.fences - 1)})
	return held, m.fences
}

// check compares what a reader knows with what is there.
func (m *machine) check(name string, r *reader, held map[uint64]bool) {
	m.t.Helper()
	if !maps.Equal(r.known["GPU"], held) {
		m.t.Fatalf("the %s reader knows %d blocks, the pool holds %d\n%x\n%x", name, len(r.known["GPU"]), len(held),
			slices.Sorted(maps.Keys(r.known["GPU"])), slices.Sorted(maps.Keys(held)))
	}
	for h := range r.known["CPU"] {
		if !m.host.Has(new(m.hashes[h]), 0) {
			m.t.Fatalf("the %s reader knows %x in host memory, where it is not", name, h)
		}
	}
}

// TestReadersKnowThePool is the promise of this package: whatever happens to the engine and to the connection, a reader that
// applies batches in order and asks for what it missed knows what the pool holds.
func TestReadersKnowThePool(t *testing.T) {
	operations := 10_000
	if testing.Short() {
		operations = 1000
	}
	for seed, cfg := range []kvevent.Config{
		{Form: kvevent.Map, Grace: -1},
		{Form: kvevent.Array, Grace: -1, BufferSteps: 16, HighWater: 4}, // wraps all the time
	} {
		t.Run("seed="+strconv.Itoa(seed), func(t *testing.T) {
			m := newMachine(t, uint64(seed), cfg)
			steady, restless := newReader(t, m.stream), newReader(t, m.stream)
			steady.join()
			restless.join()
			for i := range operations {
				m.operate()
				if m.rng.IntN(40) == 0 {
					restless.join()
				}
				if i%100 > 0 {
					continue
				}
				held, fence := m.pool()
				for !steady.known["GPU"][fence] {
					steady.read()
				}
				for !restless.known["GPU"][fence] {
					restless.read()
				}
				m.check("steady", steady, held)
				m.check("restless", restless, held)
				if i%500 == 0 {
					fresh := newReader(t, m.stream)
					fresh.replay()
					m.check("fresh", fresh, held)
				}
			}
			st := m.stream.Stats()
			t.Logf("%d batches, the restless reader missed something %d times, the steady one %d times; %+v", st.Published,
				restless.asked, steady.asked, st)
			t.Logf("host memory holds %d blocks, the steady reader knows %d", m.host.Stats().Blocks, len(steady.known["CPU"]))
			if restless.asked == 0 || cfg.BufferSteps > 0 && st.Snapshots == 0 {
				t.Error("nothing was missed, or never a snapshot asked for")
			}
		})
	}
}
