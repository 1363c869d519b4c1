package connector_test

import (
	"testing"
	"testing/synctest"

	"github.com/quire-ai/quire/internal/connector"
)

// TestMissesAreCounted: a block counts as missed by each tier that does not hold it, up to the one that does; once a request,
// however often it is looked up.
func TestMissesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemStore(1)
		p := prompt(1, 10*blockSize+3)
		for _, want := range [][2]uint64{{10, 10}, {10, 0}} { // cold, and with what the store kept
			r := newRig(t, tiers{blocks: 16, ramBlocks: 64, stores: []connector.Store{store}})
			r.serve(p, 1)
			synctest.Wait() // for the writers
			if st := r.chain.Stats(); st[0].Missed != want[0] || st[1].Missed != want[1] {
				t.Errorf("ram missed %d blocks, the store %d; want %v", st[0].Missed, st[1].Missed, want)
			}
			r.crowdOut(16)
			before := r.chain.Stats()
			r.serve(p, 1)
			if st := r.chain.Stats(); st[0].Missed != before[0].Missed || st[1].Missed != before[1].Missed {
				t.Errorf("what ram holds is missed: %d and %d blocks more", st[0].Missed-before[0].Missed, st[1].Missed-before[1].Missed)
			}
			r.close()
		}
	})
}
