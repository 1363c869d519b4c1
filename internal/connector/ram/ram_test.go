package ram_test

import (
	"bytes"
	"testing"

	"github.com/quire-ai/quire/internal/connector/ram"
	"github.com/quire-ai/quire/kv"
)

func hash(i int) *kv.Hash { return &kv.Hash{byte(i), byte(i >> 8), 1} }

func block(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 64) }

func TestLeastRecentlyUsedGoes(t *testing.T) {
	c, err := ram.New(3*64, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 3 {
		c.Put(hash(i), 0, block(i))
	}
	c.Put(hash(0), 0, block(0)) // used again: 1 is the oldest now
	c.Put(hash(3), 0, block(3))
	for i, want := range []bool{true, false, true, true} {
		if got := c.Has(hash(i), 0); got != want {
			t.Errorf("Has(%d) = %t, want %t", i, got, want)
		}
	}
	if st := c.Stats(); st.Blocks != 3 || st.Capacity != 3 || st.Stored != 4 || st.Evicted != 1 {
		t.Errorf("%+v, want 3 of 3 blocks, 4 stored, 1 evicted", st)
	}
}

func TestPinnedStays(t *testing.T) {
	c, err := ram.New(2*64, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Put(hash(0), 0, block(0))
	c.Put(hash(1), 0, block(1))
	slot, b, ok := c.Pin(hash(0), 0)
	again, _, _ := c.Pin(hash(0), 0)
	for i := 2; i < 9; i++ {
		c.Put(hash(i), 0, block(i))
	}
	if !ok || again != slot || !bytes.Equal(b, block(0)) || !c.Has(hash(0), 0) {
		t.Fatal("a pinned block was replaced")
	}
	c.Clear()
	if st := c.Stats(); st.Blocks != 1 || st.Pinned != 1 {
		t.Errorf("after Clear: %+v, want the pinned block only", st)
	}
	c.Unpin(slot)
	c.Unpin(again)
	c.Put(hash(10), 0, block(10))
	c.Put(hash(11), 0, block(11))
	if c.Has(hash(0), 0) || c.Stats().Pinned != 0 {
		t.Error("the block is still there after its pins went and two others came")
	}
}

func TestAllPinnedPutsNothing(t *testing.T) {
	c, err := ram.New(64, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Put(hash(0), 0, block(0))
	slot, _, _ := c.Pin(hash(0), 0)
	c.Put(hash(1), 0, block(1))
	if c.Has(hash(1), 0) || !c.Has(hash(0), 0) {
		t.Error("a block came in though the only place is pinned")
	}
	c.Unpin(slot)
}

func TestTooSmall(t *testing.T) {
	if _, err := ram.New(63, 64); err == nil {
		t.Error("New made a cache of less than a block")
	}
}
