package llm

import (
	"testing"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// TestSizeCache holds how large a KV cache is that nobody, or somebody, chose.
func TestSizeCache(t *testing.T) {
	const block = 16 * 1000 // bytes: 1,000 a token
	windows := []kv.Group{{}, {Window: 512}}
	for _, tc := range []struct {
		name         string
		seqs, maxLen int
		tokens       int
		memory, free int64
		want         int // blocks; 0 is an error
		groups       []kv.Group
	}{
		{"room for 32,768 tokens", 64, 8192, 0, 0, 1 << 40, 2048, nil},
		{"or for one longest request", 64, 131072, 0, 0, 1 << 40, 8192, nil},
		{"or for all that may run", 2, 1000, 0, 0, 1 << 40, 125, nil},
		{"a quarter of the free memory", 64, 8192, 0, 0, 4 * 100 * block, 100, nil},
		{"8 GiB at most", 64, 16 << 20, 0, 0, 1 << 40, 8 << 30 / block, nil},
		{"tokens that were chosen", 64, 8192, 4096, 0, 0, 256, nil},
		{"bytes that were chosen, rounded down", 64, 8192, 0, 10*block + 1, 0, 10, nil},
		{"too few bytes", 64, 8192, 0, block - 1, 0, 0, nil},
		// A window of 512 tokens and a step of 512 cover 65 blocks at most.
		{"room for 32,768 tokens in short requests", 64, 8192, 0, 0, 1 << 40, 2 * 2048, windows},
		{"or for all that may run, under windows", 2, 8192, 0, 0, 1 << 40, 2 * (512 + 65), windows},
		{"tokens of one request", 64, 8192, 4096, 0, 0, 256 + 65, windows},
		{"tokens of one short request", 64, 8192, 512, 0, 0, 32 + 32, windows},
		{"tokens of two and a half requests", 64, 8192, 20480, 0, 0, 1280 + 3*65, windows},
		{"bytes that were chosen, under windows", 64, 8192, 0, 10 * block, 0, 10, windows},
	} {
		o := Options{
			KVCacheTokens: tc.tokens, KVCacheMemory: tc.memory,
			Engine: engine.Config{Sched: sched.Config{
				BlockSize: 16, MaxNumSeqs: tc.seqs, MaxNumBatchedTokens: 512, MaxModelLen: tc.maxLen, Groups: tc.groups,
			}},
		}
		got, err := sizeCache(o, block, tc.free)
		if got != tc.want || (err == nil) != (tc.want > 0) {
			t.Errorf("%s: sizeCache = %d, %v, want %d", tc.name, got, err, tc.want)
		}
	}
}
