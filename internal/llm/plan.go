package llm

import (
	"fmt"
	"log/slog"
	"sort"
	"strings"

	"github.com/quire-ai/quire/sched"
)

// MemoryPlan is what a loaded model takes, for people.
type MemoryPlan struct {
	WeightBytes int64

	Blocks     int // usable; one more, the null block, is allocated
	BlockSize  int // tokens
	BlockBytes int64
	Tokens     int // that fit, in requests as long as may be

	MaxModelLen    int // most tokens of a request by the model or by choice
	LongestRequest int // most tokens of a request that this KV cache allows, at most MaxModelLen
	CPU            string
	Threads        int

	// RequestBytes is what the longest request holds of the KV cache at most, WholeBytes what it would hold if every layer kept
	// the whole context: more if the model has sliding windows that end before.
	RequestBytes, WholeBytes int64
}

// memoryPlan fills in what follows from the scheduler's configuration.
func memoryPlan(s *sched.Config, blockBytes int64, longest int) MemoryPlan {
	p := MemoryPlan{
		Blocks: s.Blocks, BlockSize: s.BlockSize, BlockBytes: blockBytes, MaxModelLen: s.MaxModelLen, LongestRequest: longest,
		RequestBytes: int64(min(s.BlocksFor(longest), s.Blocks)) * blockBytes,
	}
	most := s.Blocks * (s.MaxModelLen/s.BlockSize + 1) // a request holds a block at least
	p.Tokens = s.BlockSize * sort.Search(most, func(n int) bool { return s.BlocksFor((n+1)*s.BlockSize) > s.Blocks })
	return p
}

// KVBytes is the memory of the usable blocks.
func (p MemoryPlan) KVBytes() int64 { return int64(p.Blocks) * p.BlockBytes }

// String gives the plan in one line.
func (p MemoryPlan) String() string {
	cache := fmt.Sprintf("KV cache %d blocks × %d = %d tokens, %s", p.Blocks, p.BlockSize, p.Tokens, bytesString(p.KVBytes()))
	longest := fmt.Sprintf("longest request %d tokens", p.LongestRequest)
	if p.windowed() {
		cache = fmt.Sprintf("KV cache %d blocks of %s hold %d tokens, %s",
			p.Blocks, bytesString(p.BlockBytes), p.Tokens, bytesString(p.KVBytes()))
		longest += fmt.Sprintf(" in %s, %s without windows", bytesString(p.RequestBytes), bytesString(p.WholeBytes))
	}
	return fmt.Sprintf("%s; %s; weights %s; %s, %s", cache, longest, bytesString(p.WeightBytes), p.CPU, threads(p.Threads))
}

// windowed tells whether layers keep less than the whole context.
func (p MemoryPlan) windowed() bool { return p.Blocks*p.BlockSize != p.Tokens }

// LogValue gives the plan's numbers as attributes.
func (p MemoryPlan) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.Int("blocks", p.Blocks), slog.Int("block_size", p.BlockSize), slog.Int("tokens", p.Tokens),
		slog.Int64("kv_bytes", p.KVBytes()), slog.Int("longest_request", p.LongestRequest),
	}
	if p.windowed() {
		attrs = append(attrs, slog.Int64("request_bytes", p.RequestBytes), slog.Int64("request_bytes_without_windows", p.WholeBytes))
	}
	return slog.GroupValue(append(attrs,
		slog.Int64("weight_bytes", p.WeightBytes), slog.String("cpu", p.CPU), slog.Int("threads", p.Threads))...)
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

// A KV cache whose size nobody chose holds cacheTokens, however short the requests, or one longest request, if that is more;
// cacheShare and cacheLimit bound it. It is no larger because the kernel clears all of it before the first request is served:
// half a second a gigabyte, and five times that on a virtual machine.
const (
	cacheTokens = 32768
	cacheShare  = 4       // a quarter of the free memory
	cacheLimit  = 8 << 30 // bytes
	assumedFree = 4 << 30 // bytes, where nobody can tell
)

// sizeCache returns the number of usable blocks. free is the memory left, for the case that nobody chose a size.
func sizeCache(o Options, blockBytes, free int64) (int, error) {
	s := o.Engine.Sched
	if o.KVCacheTokens > 0 {
		return s.BlocksFor(o.KVCacheTokens), nil
	}
	bytes := o.KVCacheMemory
	if bytes == 0 {
		short := max(1, len(s.Groups)) * ((max(cacheTokens, s.MaxModelLen) + s.BlockSize - 1) / s.BlockSize)
		useful := int64(min(s.BlocksFor(s.MaxNumSeqs*s.MaxModelLen), short)) * blockBytes
		bytes = min(free/cacheShare, cacheLimit, useful)
	}
	blocks := bytes / blockBytes
	if blocks < 1 {
		return 0, fmt.Errorf("KV cache of %s holds no block: one of %d tokens takes %s", bytesString(bytes), s.BlockSize, bytesString(blockBytes))
	}
	return int(blocks), nil
}
