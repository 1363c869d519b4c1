package connector_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/engine"
)

// vllm #46014: an assertion failed when a preempted request came back while its store jobs were running. Here two requests
// share a pool that holds one and a half of them, and the store takes nothing until both have ended: each is preempted and
// admitted again while its first five blocks and more are on their way out. No text differs, and no chunk is written twice.
func TestPreemptedWhileStored46014(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore(1)
		store.holdWrites = make(chan struct{})
		r := newRig(t, tiers{blocks: 12, stores: []connector.Store{store}, buffers: 64})
		defer r.close()
		var handles []*engine.Handle
		for i := range 3 {
			h, err := r.engine.Submit(t.Context(), request(prompt(i, 5*blockSize+3), 60))
			if err != nil {
				t.Fatal(err)
			}
			handles = append(handles, h)
		}
		for i, h := range handles {
			got, _, err := readHandle(h)
			if want := alone(prompt(i, 5*blockSize+3), 60); err != nil || !slices.Equal(got, want) {
				t.Errorf("request %d: %v, %v; alone it is %v", i, got, err, want)
			}
		}
		if s := r.engine.Snapshot(); s.Preemptions == 0 {
			t.Error("nobody was preempted: the test shows nothing")
		}
		close(store.holdWrites)
		synctest.Wait()
		written := 0
		for h, n := range store.writes {
			if written++; n != 1 {
				t.Errorf("chunk %v was written %d times", h, n)
			}
		}
		if written < 3*5 {
			t.Errorf("%d chunks were written; want the prompts' at least", written)
		}
	})
}

// vllm #44100: an abort between the look-up and the admission left look-up state and read locks in the cache server. A thousand
// requests whose prompts lie in the ram tier and in a store are looked up while the pool has no room for them, and leave.
func TestAbortBetweenLookupAndAdmission44100(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore(1)
		r := newRig(t, tiers{blocks: 12, ramBlocks: 8, stores: []connector.Store{store}})
		defer r.close()
		p := prompt(1, 10*blockSize+3)
		r.serve(p, 4)
		r.crowdOut(12)
		hog, err := r.engine.Submit(t.Context(), request(prompt(2, 100), 80))
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			h, err := r.engine.Submit(t.Context(), request(p, 4))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := hog.Next(t.Context()); err != nil { // a step, in which the new one is looked at
				hog, err = r.engine.Submit(t.Context(), request(prompt(2, 100), 80))
				if err != nil {
					t.Fatal(err)
				}
			}
			h.Abort()
			_, _, _ = readHandle(h)
		}
		hog.Abort()
		_, _, _ = readHandle(hog)
		synctest.Wait()
		r.checkWhole()
		if f := r.serve(p, 4); f.LoadedTokens == 0 {
			t.Error("afterwards nothing is loaded")
		}
		synctest.Wait()
	})
}

// vllm #44701, #44250: a tenant got blocks of another from the tier behind the cache. Salts are part of the keys there, too.
func TestTenantsShareNoTier44701(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tiers{blocks: 16, ramBlocks: 256, stores: []connector.Store{newMemStore(1)}})
		defer r.close()
		p := prompt(1, 10*blockSize+3)
		loaded := func(salt string) int {
			t.Helper()
			q := request(p, 4)
			q.CacheSalt = salt
			got, finish, err := read(r.engine, q)
			if want := alone(p, 4); err != nil || !slices.Equal(got, want) {
				t.Errorf("salt %q: text %v, %v; alone it is %v", salt, got, err, want)
			}
			synctest.Wait()
			r.crowdOut(16)
			return finish.LoadedTokens
		}
		for _, salt := range []string{"", "x", "y"} {
			if n := loaded(salt); n != 0 {
				t.Errorf("salt %q: %d tokens of others were loaded", salt, n)
			}
		}
		for _, salt := range []string{"", "x", "y"} {
			if n := loaded(salt); n != 10*blockSize {
				t.Errorf("salt %q: %d of its own tokens were loaded; want 160", salt, n)
			}
		}
	})
}
