package llm

import (
	"fmt"
	"log/slog"

	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/engine"
)

// Defaults of the scheduler, taken where Options leave zero.
const (
	DefaultBlockSize           = 16  // tokens
	DefaultMaxNumSeqs          = 64  // requests
	DefaultMaxNumBatchedTokens = 512 // tokens
	// DefaultWatermark is the share of the KV cache that admissions leave free while others run: room for these to grow,
	// so that fewer are preempted (docs/decisions/0070-watermark.md). Options do not take it by themselves: 0 is a choice.
	DefaultWatermark = 1.0 / 16
)

// Options say what to load and how much it may take. Only Model is needed.
type Options struct {
	// Model is a path to a .gguf file or, with a Catalog, whatever that resolves. Catalog may be nil.
	Model   string
	Catalog *catalog.Catalog

	// CPU forces a level of kernels ("generic", "avx2", "avx512vnni", "amx"); empty or "auto" takes the best.
	CPU string
	// Threads is the number of workers; 0 takes as many as this process may keep busy.
	Threads int

	// MaxModelLen is the most tokens of a request, prompt and output; 0 takes the model's own context.
	MaxModelLen int
	// WholeContext has sliding-window layers keep the whole context, as the others do, instead of what their windows reach. No
	// answer depends on it.
	WholeContext bool
	// KVCacheTokens is the exact size of the KV cache in tokens, a multiple of the block size; with sliding windows, of tokens in
	// requests as long as may be, and fewer in short ones, of which the windows save less. KVCacheMemory is its size in bytes,
	// rounded down to whole blocks. At most one may be given; with neither, the cache has room for 32,768 tokens, in requests
	// however short, or one longest request, but takes no more than 8 GiB, a quarter of the memory that is free once the weights
	// are loaded, or what MaxNumSeqs longest requests fill.
	KVCacheTokens int
	KVCacheMemory int64

	// Tiers says where KV goes that leaves the cache, and comes back from.
	Tiers Tiers

	// Engine configures scheduler and engine. Load fills in what follows from the model: Vocab, Sched.Blocks and
	// Sched.MaxModelLen; a zero BlockSize, MaxNumSeqs or MaxNumBatchedTokens takes the default above.
	Engine engine.Config

	// ChatTemplate is the source of a chat template to use instead of the model's.
	ChatTemplate string

	// Progress is told how far loading is, from the goroutine that loads; it may be nil.
	Progress func(Progress)
	// Log may be nil.
	Log *slog.Logger
}

// Progress says how much of a model's weights is ready.
type Progress struct {
	Done, Total int64 // bytes of the file's weights
}

func (o Options) withDefaults() (Options, error) {
	s := &o.Engine.Sched
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&s.BlockSize, DefaultBlockSize)
	set(&s.MaxNumSeqs, DefaultMaxNumSeqs)
	set(&s.MaxNumBatchedTokens, DefaultMaxNumBatchedTokens)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Engine.Log == nil {
		o.Engine.Log = o.Log
	}
	switch {
	case o.KVCacheTokens < 0 || o.KVCacheMemory < 0:
		return o, fmt.Errorf("KV cache of %d tokens or %d bytes: must not be negative", o.KVCacheTokens, o.KVCacheMemory)
	case o.KVCacheTokens > 0 && o.KVCacheMemory > 0:
		return o, fmt.Errorf("KV cache of %d tokens and of %d bytes: give one of the two", o.KVCacheTokens, o.KVCacheMemory)
	case o.KVCacheTokens%s.BlockSize != 0:
		return o, fmt.Errorf("KV cache of %d tokens is not a multiple of the block size %d: %d and %d are", o.KVCacheTokens, s.BlockSize,
			o.KVCacheTokens/s.BlockSize*s.BlockSize, (o.KVCacheTokens/s.BlockSize+1)*s.BlockSize)
	}
	return o, nil
}
