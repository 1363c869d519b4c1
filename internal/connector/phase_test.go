package connector_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/engine"
)

// The phases of a request whose prompt a store holds, and the events that may come in each. After every one of them all
// blocks and pins are back, the others' texts are right, and the request has had one answer.

var phases = []struct {
	name string
	get  func(*testing.T, *rig, *memStore, *engine.Handle) // brings the request there
}{
	{"deferred behind another's load", func(_ *testing.T, r *rig, _ *memStore, _ *engine.Handle) { synctest.Wait() }},
	{"loading, nothing there", func(_ *testing.T, r *rig, _ *memStore, _ *engine.Handle) { synctest.Wait() }},
	{"loading, some there", func(_ *testing.T, r *rig, s *memStore, _ *engine.Handle) {
		for range 3 {
			s.hold <- struct{}{}
		}
		synctest.Wait()
	}},
	{"loaded, running", func(t *testing.T, r *rig, s *memStore, h *engine.Handle) {
		for range 10 {
			s.hold <- struct{}{}
		}
		if _, err := h.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
	}},
}

var events = []struct {
	name string
	do   func(*testing.T, *rig, *memStore, *engine.Handle) (err error) // what the request's reader then gets
}{
	{"abort", func(_ *testing.T, r *rig, s *memStore, h *engine.Handle) error { h.Abort(); return nil }},
	{"abort twice, then the store answers", func(_ *testing.T, r *rig, s *memStore, h *engine.Handle) error {
		h.Abort()
		h.Abort()
		synctest.Wait()
		close(s.hold)
		return nil
	}},
	{"the store answers", func(_ *testing.T, r *rig, s *memStore, h *engine.Handle) error { close(s.hold); return nil }},
	{"the store fails", func(_ *testing.T, r *rig, s *memStore, h *engine.Handle) error {
		s.set(func(s *memStore) { s.readErr = errors.New("EIO") })
		close(s.hold)
		return nil
	}},
	{"the store is silent until the deadline", func(_ *testing.T, r *rig, s *memStore, h *engine.Handle) error {
		time.Sleep(time.Minute)
		return nil
	}},
	{"the cache is reset", func(t *testing.T, r *rig, s *memStore, h *engine.Handle) error {
		_ = r.engine.ResetPrefixCache(t.Context(), true) // refused while a load holds blocks
		close(s.hold)
		return nil
	}},
	{"the engine is closed", func(t *testing.T, r *rig, s *memStore, h *engine.Handle) error {
		if err := r.engine.Close(); err != nil {
			t.Error(err)
		}
		return engine.ErrClosed
	}},
}

func TestPhaseAndEvent(t *testing.T) {
	for i, phase := range phases {
		for _, event := range events {
			t.Run(phase.name+"/"+event.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := newMemStore(1)
					p := prompt(1, 10*blockSize+3)
					warm := newRig(t, tiers{blocks: 32, stores: []connector.Store{store}})
					warm.serve(p, 4)
					synctest.Wait()
					warm.close()

					store.hold = make(chan struct{})
					r := newRig(t, tiers{blocks: 32, ramBlocks: 4, stores: []connector.Store{store}})
					submit := func() *engine.Handle {
						h, err := r.engine.Submit(t.Context(), request(p, 400))
						if err != nil {
							t.Fatal(err)
						}
						return h
					}
					var others []*engine.Handle
					if i == 0 {
						others = append(others, submit())
					}
					h := submit()
					phase.get(t, r, store, h)
					wantErr := event.do(t, r, store, h)
					_, _, err := readHandle(h)
					if ended := i == len(phases)-1 && err == nil; !errors.Is(err, wantErr) && !ended { // it may have been faster
						t.Errorf("the request ends with %v, want %v", err, wantErr)
					}
					for _, o := range others {
						o.Abort()
						_, _, _ = readHandle(o)
					}
					if wantErr != nil {
						return
					}
					select { // from here on the store is whole
					case <-store.hold:
					default:
						close(store.hold)
					}
					store.set(func(s *memStore) { s.readErr = nil })
					synctest.Wait()
					r.serve(p, 20)
					r.serve(prompt(2, 40), 20)
					synctest.Wait()
					r.close()
				})
			})
		}
	}
}

// TestLateStoreWritesNothing: a store that ignores deadlines returns after its load has ended and the blocks belong to others.
func TestLateStoreWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore(1)
		p := prompt(1, 10*blockSize+3)
		warm := newRig(t, tiers{blocks: 32, stores: []connector.Store{store}})
		warm.serve(p, 4)
		synctest.Wait()
		warm.close()

		store.hold, store.deaf = make(chan struct{}), true
		r := newRig(t, tiers{blocks: 16, stores: []connector.Store{store}})
		defer r.close()
		r.serve(p, 20) // computed, after the deadline
		h, err := r.engine.Submit(t.Context(), request(prompt(3, 100), 100))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(store.hold)
		got, _, err := readHandle(h)
		if want := alone(prompt(3, 100), 100)[1:]; err != nil || !slices.Equal(got, want) {
			t.Errorf("text %v, %v; alone it is %v", got, err, want)
		}
		if n := r.chain.Stats()[0].Failures["deadline"]; n == 0 {
			t.Error("no deadline was counted")
		}
	})
}

// TestPreemptedLoads: requests that were preempted come back from the tiers with the text they have alone.
func TestPreemptedLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tiers{blocks: 24, ramBlocks: 256})
		defer r.close()
		var handles []*engine.Handle
		for i := range 6 {
			h, err := r.engine.Submit(t.Context(), request(prompt(i, 5*blockSize+3), 120))
			if err != nil {
				t.Fatal(err)
			}
			handles = append(handles, h)
		}
		for i, h := range handles {
			got, _, err := readHandle(h)
			if want := alone(prompt(i, 5*blockSize+3), 120); err != nil || !slices.Equal(got, want) {
				t.Errorf("request %d: %v, %v; alone it is %v", i, got, err, want)
			}
		}
		if s := r.engine.Snapshot(); s.Preemptions == 0 || s.ExternalPreempted.Hit == 0 {
			t.Errorf("%d preemptions, %d tokens loaded after one: the test shows nothing", s.Preemptions, s.ExternalPreempted.Hit)
		}
	})
}
