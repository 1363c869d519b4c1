package connector_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/kv"
)

// TestRAMBringsBack: what the pool forgot comes back from memory, and the text is the same.
func TestRAMBringsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tiers{blocks: 16, ramBlocks: 64})
		defer r.close()
		p := prompt(1, 10*blockSize+3)
		if f := r.serve(p, 20); f.CachedTokens != 0 {
			t.Fatalf("%d tokens are cached at first", f.CachedTokens)
		}
		r.crowdOut(16)
		if f := r.serve(p, 20); f.LoadedTokens != 10*blockSize || f.CachedTokens != 10*blockSize {
			t.Errorf("%d of %d cached tokens were loaded, want all 160", f.LoadedTokens, f.CachedTokens)
		}
		if f := r.serve(p, 20); f.LoadedTokens != 0 || f.CachedTokens != 10*blockSize {
			t.Errorf("at once again: %d of %d cached tokens were loaded, want none of 160", f.LoadedTokens, f.CachedTokens)
		}
	})
}

// TestStoreBringsBack: what a store holds serves a fresh pool, in chunks of one block and of several.
func TestStoreBringsBack(t *testing.T) {
	for _, n := range []int{1, 4} {
		t.Run(fmt.Sprintf("chunk=%d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newMemStore(n)
				p := prompt(1, 10*blockSize+3)
				for restart, want := range []int{0, 10 / n * n * blockSize} {
					r := newRig(t, tiers{blocks: 32, stores: []connector.Store{store}})
					if f := r.serve(p, 20); f.LoadedTokens != want {
						t.Errorf("start %d: %d tokens loaded, want %d", restart, f.LoadedTokens, want)
					}
					synctest.Wait() // for the writers
					r.close()
				}
			})
		})
	}
}

// TestMixedHit: the pool has the first blocks, ram the next, a store the rest, in chunks that begin before they are needed.
func TestMixedHit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore(4)
		r := newRig(t, tiers{blocks: 24, ramBlocks: 6, stores: []connector.Store{store}})
		defer r.close()
		p := prompt(1, 16*blockSize+3)
		r.serve(p, 4)
		synctest.Wait()
		r.crowdOut(24)
		r.serve(p[:5*blockSize+2], 4) // five blocks are in the pool again
		if f := r.serve(p, 4); f.CachedTokens != 16*blockSize || f.LoadedTokens != 11*blockSize {
			t.Errorf("%d of %d cached tokens were loaded, want 176 of 256", f.LoadedTokens, f.CachedTokens)
		}
	})
}

// faults are what may go wrong while a request loads from a store.
var faults = []struct {
	cause string
	fault func(*memStore)
	drops bool // the store is told
}{
	{"corrupt", func(s *memStore) { s.flip = true }, true},
	{"read", func(s *memStore) { s.readErr = errors.New("EIO") }, true},
	{"missing", func(s *memStore) { s.readErr = fmt.Errorf("evicted: %w", chunk.ErrMissing) }, false},
}

// TestBadLoadIsComputed: whatever a store returns, the text is right, the fault is counted and the store told.
func TestBadLoadIsComputed(t *testing.T) {
	for _, f := range faults {
		t.Run(f.cause, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newMemStore(1)
				p := prompt(1, 10*blockSize+3)
				warm := newRig(t, tiers{blocks: 32, stores: []connector.Store{store}})
				warm.serve(p, 4)
				synctest.Wait()
				warm.close()
				r := newRig(t, tiers{blocks: 32, stores: []connector.Store{store}})
				defer r.close()
				store.set(f.fault)
				if got := r.serve(p, 20); got.LoadedTokens != 0 || got.CachedTokens != 0 {
					t.Errorf("%d tokens loaded from a store that lies", got.LoadedTokens)
				}
				st := r.chain.Stats()[0]
				if st.Failures[f.cause] == 0 || (store.drops > 0) != f.drops {
					t.Errorf("failures %v, %d drops; want some %s", st.Failures, store.drops, f.cause)
				}
			})
		})
	}
}

// TestBreaker: a store that keeps failing is set aside, and taken back when it works again.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore(1)
		store.writeErr = errors.New("ENOSPC")
		r := newRig(t, tiers{blocks: 64, stores: []connector.Store{store}})
		defer r.close()
		r.serve(prompt(1, 10*blockSize+3), 1)
		synctest.Wait()
		st := r.chain.Stats()[0]
		if !st.Open || st.Refused == 0 || st.Failures["write"] < 3 || st.Failures["write"] > 5 {
			t.Errorf("after ten writes that failed: %+v; want the breaker open after three and those under way", st)
		}
		store.set(func(s *memStore) { s.writeErr = nil })
		time.Sleep(time.Second)
		r.serve(prompt(2, 10*blockSize+3), 1)
		synctest.Wait()
		if st := r.chain.Stats()[0]; st.Open || st.Stored.Blocks != 10 {
			t.Errorf("after it works again: %+v; want ten blocks stored", st)
		}
	})
}

// TestFullBuffersDrop: a store slower than the engine loses chunks, is never waited for, and the loss is counted.
func TestFullBuffersDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore(1)
		store.mu.Lock() // writers wait here
		r := newRig(t, tiers{blocks: 64, stores: []connector.Store{blind{store}}, buffers: 4})
		r.serve(prompt(1, 20*blockSize+3), 1)
		if st := r.chain.Stats()[0]; st.Dropped != 16 {
			t.Errorf("%d of 20 chunks dropped with 4 buffers, want 16", st.Dropped)
		}
		store.mu.Unlock()
		synctest.Wait()
		r.close()
	})
}

// blind is a store that never says what it has.
type blind struct{ *memStore }

func (blind) Has(*kv.Hash) bool { return false }

// TestSecondWaitsForFirst: two requests with one prompt read it once.
func TestSecondWaitsForFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore(1)
		p := prompt(1, 10*blockSize+3)
		warm := newRig(t, tiers{blocks: 32, stores: []connector.Store{store}})
		warm.serve(p, 4)
		synctest.Wait()
		warm.close()

		store.hold = make(chan struct{})
		r := newRig(t, tiers{blocks: 64, stores: []connector.Store{store}})
		defer r.close()
		var handles []*engine.Handle
		for range 3 {
			h, err := r.engine.Submit(t.Context(), request(p, 4))
			if err != nil {
				t.Fatal(err)
			}
			handles = append(handles, h)
		}
		synctest.Wait()
		close(store.hold)
		want := alone(p, 4)
		for i, h := range handles {
			got, f, err := readHandle(h)
			if err != nil || !slices.Equal(got, want) || f.CachedTokens != 10*blockSize || (i == 0) != (f.LoadedTokens > 0) {
				t.Errorf("request %d: %v, %+v, %v", i, got, f, err)
			}
		}
		if store.reads != 10 {
			t.Errorf("%d reads for one prompt of 10 blocks", store.reads)
		}
	})
}

// TestHitPromotes: what a far store brought the near one has afterwards.
func TestHitPromotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := newMemStore(1), newMemStore(4)
		p := prompt(1, 10*blockSize+3)
		for _, stores := range [][]connector.Store{{far}, {near, far}} {
			r := newRig(t, tiers{blocks: 32, stores: stores})
			r.serve(p, 4)
			synctest.Wait()
			r.close()
		}
		r := newRig(t, tiers{blocks: 32, stores: []connector.Store{near}})
		defer r.close()
		if f := r.serve(p, 4); f.LoadedTokens != 10*blockSize {
			t.Errorf("%d tokens loaded from the near store, want 8 blocks that came from afar and 2 that were computed", f.LoadedTokens)
		}
	})
}
