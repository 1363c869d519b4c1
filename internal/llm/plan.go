package llm

import (
	"fmt"
	"log/slog"
	"strings"
)

// MemoryPlan is what a loaded model takes, for people.
type MemoryPlan struct {
	WeightBytes int64

	Blocks     int // usable; one more, the null block, is allocated
	BlockSize  int // tokens
	BlockBytes int64

	MaxModelLen    int // most tokens of a request by the model or by choice
	LongestRequest int // most tokens of a request that this KV cache allows, at most MaxModelLen
	CPU            string
	Threads        int
}

// Tokens is the size of the KV cache.
func (p MemoryPlan) Tokens() int { return p.Blocks * p.BlockSize }

// KVBytes is the memory of the usable blocks.
func (p MemoryPlan) KVBytes() int64 { return int64(p.Blocks) * p.BlockBytes }

// String gives the plan in one line.
func (p MemoryPlan) String() string {
	return fmt.Sprintf("KV cache %d blocks × %d = %d tokens, %s; longest request %d tokens; weights %s; %s, %s",
		p.Blocks, p.BlockSize, p.Tokens(), bytesString(p.KVBytes()), p.LongestRequest, bytesString(p.WeightBytes), p.CPU, threads(p.Threads))
}

// LogValue gives the plan's numbers as attributes.
func (p MemoryPlan) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("blocks", p.Blocks), slog.Int("block_size", p.BlockSize), slog.Int("tokens", p.Tokens()),
		slog.Int64("kv_bytes", p.KVBytes()), slog.Int("longest_request", p.LongestRequest),
		slog.Int64("weight_bytes", p.WeightBytes), slog.String("cpu", p.CPU), slog.Int("threads", p.Threads),
	)
}

func threads(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}

// bytesString writes a size with three digits at least: 896 MiB, 1.50 GiB.
func bytesString(n int64) string {
	units := strings.Fields("B KiB MiB GiB TiB")
	v := float64(n)
	for v >= 1024 && len(units) > 1 {
		v, units = v/1024, units[1:]
	}
	if v >= 100 || units[0] == "B" {
		return fmt.Sprintf("%.0f %s", v, units[0])
	}
	return fmt.Sprintf("%.3g %s", v, units[0])
}

// A KV cache whose size nobody chose holds cacheTokens or one longest request, if that is more; cacheShare and cacheLimit
// bound it. It is no larger because the kernel clears all of it before the first request is served: half a second a
// gigabyte, and five times that on a virtual machine.
const (
	cacheTokens = 32768
	cacheShare  = 4       // a quarter of the free memory
	cacheLimit  = 8 << 30 // bytes
	assumedFree = 4 << 30 // bytes, where nobody can tell
)

// sizeCache returns the number of usable blocks. free is the memory left, for the case that nobody chose a size.
func sizeCache(o Options, blockBytes int64, maxModelLen int, free int64) (int, error) {
	s := o.Engine.Sched
	if o.KVCacheTokens > 0 {
		return o.KVCacheTokens / s.BlockSize, nil
	}
	bytes := o.KVCacheMemory
	if bytes == 0 {
		tokens := min(s.MaxNumSeqs*maxModelLen, max(cacheTokens, maxModelLen))
		useful := int64((tokens+s.BlockSize-1)/s.BlockSize) * blockBytes
		bytes = min(free/cacheShare, cacheLimit, useful)
	}
	blocks := bytes / blockBytes
	if blocks < 1 {
		return 0, fmt.Errorf("KV cache of %s holds no block: one of %d tokens takes %s", bytesString(bytes), s.BlockSize, bytesString(blockBytes))
	}
	return int(blocks), nil
}
