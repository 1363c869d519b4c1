package chunk_test

import (
	"testing"

	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/kv"
)

func sealed(f chunk.Format, h *kv.Hash) []byte {
	b := make([]byte, f.BufferBytes())
	for i := range f.Payload(b) {
		f.Payload(b)[i] = byte(i * 7)
	}
	f.Seal(b, h)
	return b
}

// TestCheckFindsEveryBit: whatever bit of header or payload changes, the chunk is refused.
func TestCheckFindsEveryBit(t *testing.T) {
	f := chunk.Format{Fingerprint: chunk.Fingerprint{1, 2, 3}, Blocks: 2, BlockBytes: 100}
	h := &kv.Hash{9, 8, 7}
	b := sealed(f, h)
	if err := f.Check(b, h); err != nil {
		t.Fatal(err)
	}
	first := chunk.PageBytes - chunk.HeaderBytes
	for i := first; i < first+len(f.Value(b)); i++ {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if f.Check(b, h) == nil {
				t.Fatalf("bit %d of byte %d changed, and the chunk is accepted", bit, i)
			}
			b[i] ^= 1 << bit
		}
	}
}

func TestCheckRefusesOthers(t *testing.T) {
	f := chunk.Format{Fingerprint: chunk.Fingerprint{1, 2, 3}, Blocks: 2, BlockBytes: 100}
	h := &kv.Hash{9, 8, 7}
	b := sealed(f, h)
	if f.Check(b, &kv.Hash{9, 8, 6}) == nil {
		t.Error("the chunk of another hash is accepted")
	}
	for name, other := range map[string]chunk.Format{
		"model": {Fingerprint: chunk.Fingerprint{1, 2, 4}, Blocks: 2, BlockBytes: 100},
		"shape": {Fingerprint: chunk.Fingerprint{1, 2, 3}, Blocks: 4, BlockBytes: 50},
	} {
		if other.Check(b, h) == nil {
			t.Errorf("the chunk of another %s is accepted", name)
		}
	}
	if f.Check(make([]byte, f.BufferBytes()), h) == nil {
		t.Error("zeros are accepted")
	}
}
