package connector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/connector/ram"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

const blockSize = 16

// rig is an engine over the toy whose text shows every wrong block, with tiers behind its pool.
type rig struct {
	t      *testing.T
	engine *engine.Engine
	chain  *connector.Chain
	ram    *ram.Cache
}

// tiers says what is behind a pool of so many blocks.
type tiers struct {
	blocks    int
	ramBlocks int
	stores    []connector.Store
	buffers   int // chunks; 0 is the default
}

func newRig(t *testing.T, o tiers) *rig {
	t.Helper()
	toy := executortest.New(executortest.Options{Blocks: o.blocks, BlockSize: blockSize})
	cfg := connector.Config{
		Memory: toy, Format: chunk.Format{Blocks: 1, BlockBytes: toy.BlockBytes()}, Stores: o.stores, BlockSize: blockSize,
		BufferBytes: o.buffers * 2 * chunk.PageBytes,
	}
	r := &rig{t: t}
	if o.ramBlocks > 0 {
		var err error
		if r.ram, err = ram.New(int64(o.ramBlocks*toy.BlockBytes()), toy.BlockBytes()); err != nil {
			t.Fatal(err)
		}
		cfg.RAM = r.ram
	}
	var err error
	if r.chain, err = connector.New(cfg); err != nil {
		t.Fatal(err)
	}
	r.engine = engine.New(engine.Config{
		Sched: sched.Config{Blocks: o.blocks, BlockSize: blockSize, MaxNumSeqs: 8, MaxNumBatchedTokens: 128, MaxModelLen: 4096},
		Vocab: toy.Vocab(), LogInterval: -1, Connector: r.chain,
	}, toy)
	return r
}

// close ends the rig. Everything must have come back before: blocks to the pool, pins to the ram tier.
func (r *rig) close() {
	r.t.Helper()
	r.checkWhole()
	if err := r.engine.Close(); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) checkWhole() {
	r.t.Helper()
	if s := r.engine.Snapshot(); s.FreeBlocks != s.UsableBlocks || s.Live != 0 {
		r.t.Errorf("%d of %d blocks are free, %d requests live; want all and none", s.FreeBlocks, s.UsableBlocks, s.Live)
	}
	if r.ram != nil {
		if n := r.ram.Stats().Pinned; n != 0 {
			r.t.Errorf("%d blocks of the ram tier are pinned", n)
		}
	}
}

// prompt returns n tokens that depend on the seed from the first on.
func prompt(seed, n int) []int32 {
	p := make([]int32, n)
	x := uint32(seed)*2654435761 + 12345
	for i := range p {
		x = x*1664525 + 1013904223
		p[i] = int32(x >> 26) // the toy has 64 tokens
	}
	return p
}

func request(p []int32, n int) *engine.Request {
	params := sample.Default()
	params.Temperature = 0
	return &engine.Request{Prompt: p, MaxTokens: n, Sampling: params}
}

// texts remembers what alone found.
var texts struct {
	sync.Mutex
	known map[string][]int32
}

// alone is the text that a prompt has on an engine of its own, with nothing behind the pool.
func alone(p []int32, n int) []int32 {
	key := fmt.Sprint(p, n)
	texts.Lock()
	known, ok := texts.known[key]
	texts.Unlock()
	if ok {
		return known
	}
	tokens := computeAlone(p, n)
	texts.Lock()
	defer texts.Unlock()
	if texts.known == nil {
		texts.known = map[string][]int32{}
	}
	texts.known[key] = tokens
	return tokens
}

func computeAlone(p []int32, n int) []int32 {
	toy := executortest.New(executortest.Options{Blocks: 512, BlockSize: blockSize})
	e := engine.New(engine.Config{
		Sched: sched.Config{Blocks: 512, BlockSize: blockSize, MaxNumSeqs: 1, MaxNumBatchedTokens: 512, MaxModelLen: 8192},
		Vocab: toy.Vocab(), LogInterval: -1,
	}, toy)
	defer e.Close()
	tokens, _, err := read(e, request(p, n))
	if err != nil {
		panic(err)
	}
	return tokens
}

func read(e *engine.Engine, r *engine.Request) ([]int32, engine.Finish, error) {
	h, err := e.Submit(context.Background(), r)
	if err != nil {
		return nil, engine.Finish{}, err
	}
	return readHandle(h)
}

func readHandle(h *engine.Handle) ([]int32, engine.Finish, error) {
	var tokens []int32
	for {
		tok, err := h.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return tokens, h.Finish(), nil
		}
		if err != nil {
			return tokens, h.Finish(), err
		}
		tokens = append(tokens, tok.ID)
	}
}

// serve runs a request and compares its text with the one it has alone.
func (r *rig) serve(p []int32, n int) engine.Finish {
	r.t.Helper()
	got, finish, err := read(r.engine, request(p, n))
	if want := alone(p, n); err != nil || !slices.Equal(got, want) {
		r.t.Errorf("text %v, %v; alone it is %v", got, err, want)
	}
	return finish
}

// crowdOut serves prompts until the pool has forgotten all that was before.
func (r *rig) crowdOut(blocks int) {
	r.t.Helper()
	for i := range blocks/8 + 1 {
		r.serve(prompt(1000+i, 8*blockSize), 1)
	}
}

// memStore is a store in a map, with faults.
type memStore struct {
	chunkBlocks int
	hold        chan struct{} // if not nil, each read waits for a value, or for its context to end
	deaf        bool          // and ignores its context
	holdWrites  chan struct{} // if not nil, writes wait until it is closed

	mu       sync.Mutex
	chunks   map[kv.Hash][]byte
	readErr  error
	writeErr error
	flip     bool // reads come back with a bit changed
	reads    int
	writes   map[kv.Hash]int
	drops    int
	closed   bool
}

func newMemStore(chunkBlocks int) *memStore {
	return &memStore{chunkBlocks: chunkBlocks, chunks: map[kv.Hash][]byte{}, writes: map[kv.Hash]int{}}
}

func (s *memStore) Name() string     { return "mem" }
func (s *memStore) ChunkBlocks() int { return s.chunkBlocks }

func (s *memStore) Has(h *kv.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.chunks[*h]
	return ok
}

func (s *memStore) Read(ctx context.Context, h *kv.Hash, buffer []byte) error {
	if s.hold != nil {
		done := ctx.Done()
		if s.deaf {
			done = nil
		}
		select {
		case <-s.hold:
		case <-done:
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.readErr != nil {
		return s.readErr
	}
	c, ok := s.chunks[*h]
	if !ok {
		return chunk.ErrMissing
	}
	copy(buffer, c)
	if s.flip {
		buffer[chunk.PageBytes+9] ^= 4
	}
	return nil
}

func (s *memStore) Write(_ context.Context, h *kv.Hash, buffer []byte) error {
	if s.holdWrites != nil {
		<-s.holdWrites
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeErr != nil {
		return s.writeErr
	}
	s.chunks[*h] = slices.Clone(buffer)
	s.writes[*h]++
	return nil
}

func (s *memStore) Drop(h *kv.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops++
	delete(s.chunks, *h)
}

func (s *memStore) Usage() connector.Usage { return connector.Usage{} }

func (s *memStore) Close() error {
	s.closed = true
	return nil
}

// set changes the store's faults.
func (s *memStore) set(f func(*memStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}
