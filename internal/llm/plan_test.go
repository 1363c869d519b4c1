package llm

import (
	"testing"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/sched"
)

// TestSizeCache holds how large a KV cache is that nobody, or somebody, chose.
func TestSizeCache(t *testing.T) {
	const block = 16 * 1000 // bytes: 1,000 a token
	for _, tc := range []struct {
		name         string
		seqs, maxLen int
		tokens       int
		memory, free int64
		want         int // blocks; 0 is an error
	}{
		{"room for 32,768 tokens", 64, 8192, 0, 0, 1 << 40, 2048},
		{"or for one longest request", 64, 131072, 0, 0, 1 << 40, 8192},
		{"or for all that may run", 2, 1000, 0, 0, 1 << 40, 125},
		{"a quarter of the free memory", 64, 8192, 0, 0, 4 * 100 * block, 100},
		{"8 GiB at most", 64, 16 << 20, 0, 0, 1 << 40, 8 << 30 / block},
		{"tokens that were chosen", 64, 8192, 4096, 0, 0, 256},
		{"bytes that were chosen, rounded down", 64, 8192, 0, 10*block + 1, 0, 10},
		{"too few bytes", 64, 8192, 0, block - 1, 0, 0},
	} {
		o := Options{
			KVCacheTokens: tc.tokens, KVCacheMemory: tc.memory,
			Engine: engine.Config{Sched: sched.Config{BlockSize: 16, MaxNumSeqs: tc.seqs}},
		}
		got, err := sizeCache(o, block, tc.maxLen, tc.free)
		if got != tc.want || (err == nil) != (tc.want > 0) {
			t.Errorf("%s: sizeCache = %d, %v, want %d", tc.name, got, err, tc.want)
		}
	}
}
