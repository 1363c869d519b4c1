package valkey_test

import (
	"fmt"
	"testing"

	"github.com/quire-ai/quire/internal/connector/valkey"
	"github.com/quire-ai/quire/internal/connector/valkey/valkeytest"
	"github.com/quire-ai/quire/kv"
)

// TestCluster: chunks are spread over the nodes and found in one question; a slot that moves is followed, for reads, writes and
// questions; without a node the others' chunks are still found.
func TestCluster(t *testing.T) {
	cluster := valkeytest.StartCluster(t)
	a, b := newStore(t, cluster.URL, format), newStore(t, cluster.URL, format)
	var hashes []kv.Hash
	for i := range 40 {
		h := kv.Hash{byte(i), 1}
		hashes = append(hashes, h)
		if err := a.Write(t.Context(), &h, sealed(format, &h, byte(i))); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range cluster.Keys() {
		if n == 0 {
			t.Errorf("node %d holds no chunk", i)
		}
	}
	check := func(when string, s *valkey.Store) {
		t.Helper()
		if err := s.Find(t.Context(), append(hashes, kv.Hash{99, 99})); err != nil || s.Has(&kv.Hash{99, 99}) {
			t.Errorf("%s: find: %v", when, err)
		}
		buffer := make([]byte, format.BufferBytes())
		for i := range hashes {
			err := s.Read(t.Context(), &hashes[i], buffer)
			if err == nil {
				err = format.Check(buffer, &hashes[i])
			}
			if err != nil || !s.Has(&hashes[i]) {
				t.Fatalf("%s: chunk %d: %v, found %t", when, i, err, s.Has(&hashes[i]))
			}
		}
	}
	check("at first", b)

	for i := range 10 {
		cluster.Move(fmt.Sprintf("quire:kv:1:%x:%x", format.Fingerprint[:16], hashes[i]))
	}
	check("after slots moved", b)
	for i := range 10 {
		if err := a.Write(t.Context(), &hashes[i], sealed(format, &hashes[i], byte(i))); err != nil {
			t.Errorf("write to a slot that moved: %v", err)
		}
	}
	check("after they were written again", newStore(t, cluster.URL, format))

	cluster.Nodes[2].Kill()
	c := newStore(t, cluster.URL, format)
	if err := c.Find(t.Context(), hashes); err == nil {
		t.Error("no error tells of the node that is gone")
	}
	found := 0
	for i := range hashes {
		if c.Has(&hashes[i]) {
			found++
		}
	}
	if found == 0 || found == len(hashes) {
		t.Errorf("%d of %d chunks found without a node", found, len(hashes))
	}
}
