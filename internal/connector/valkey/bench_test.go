package valkey_test

import (
	"testing"

	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/connector/valkey"
	"github.com/quire-ai/quire/internal/connector/valkey/valkeytest"
	"github.com/quire-ai/quire/kv"
)

// BenchmarkRead reads chunks of 64 tokens of SmolLM2-135M, 1.5 MB, from a server on the loopback, by four readers as the
// chain does.
func BenchmarkRead(b *testing.B) {
	f := chunk.Format{Blocks: 4, BlockBytes: 368640}
	s, err := valkey.New(valkey.Config{URL: valkeytest.Start(b).URL, Format: f})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for i := range 32 {
		h := kv.Hash{byte(i)}
		if err := s.Write(b.Context(), &h, sealed(f, &h, byte(i))); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(f.PayloadBytes()))
	b.SetParallelism(2)
	b.RunParallel(func(pb *testing.PB) {
		buffer := make([]byte, f.BufferBytes())
		for i := 0; pb.Next(); i++ {
			h := kv.Hash{byte(i % 32)}
			if err := s.Read(b.Context(), &h, buffer); err != nil {
				b.Error(err)
			}
			if err := f.Check(buffer, &h); err != nil {
				b.Error(err)
			}
		}
	})
}
