package sched

import (
	"errors"
	"fmt"
	"math"

	"github.com/quire-ai/quire/kv"
)

// Policy orders the waiting requests and chooses victims.
type Policy uint8

const (
	// FCFS serves in order of arrival; the youngest running request is preempted first.
	FCFS Policy = iota
	// Priority serves by (priority, arrival, id), smaller first; the least urgent running request is preempted first.
	Priority
)

// String returns vLLM's name of the policy.
func (p Policy) String() string {
	switch p {
	case FCFS:
		return "fcfs"
	case Priority:
		return "priority"
	}
	return fmt.Sprintf("Policy(%d)", uint8(p))
}

// LoadFailurePolicy says what becomes of a request whose external KV could not be loaded.
type LoadFailurePolicy uint8

const (
	// Recompute computes the missing tokens instead.
	Recompute LoadFailurePolicy = iota
	// Fail ends the request with an error.
	Fail
)

// Config is the shape of a scheduler. It is read once, by New.
type Config struct {
	Blocks              int // usable KV blocks; ids run from 1 to Blocks
	BlockSize           int // tokens a block
	MaxNumSeqs          int // most running requests
	MaxNumBatchedTokens int // most tokens computed in a step, over all requests
	MaxModelLen         int // most tokens of a request, prompt and output

	Policy               Policy
	NoChunkedPrefill     bool // a prompt that does not fit the rest of a step's budget waits for the next step
	LongPrefillThreshold int  // most tokens of one request in a step; 0 means no limit
	NoPrefixCaching      bool // never share blocks between requests
	NoFullSequenceCheck  bool // admit a request whose first chunk fits though its known tokens do not
	Watermark            float64
	// Watermark is the share of the blocks, 0 to 1, that an admission must leave free while other requests run.

	MaxLoRAs int        // most distinct adapters in a step; 0 means no limit
	Groups   []kv.Group // cache groups of the model; empty means one with full attention
	KVEvents bool       // record KV events
	HashSeed string     // of block hashes; replicas that share a store agree on it; empty means "0"

	PipelineDepth   int  // steps in flight at once; 0 means 1
	AsyncScheduling bool // plan a request's next token before the last one is known
	SpecTokens      int  // draft tokens a request may have verified in a step
	DraftKV         bool // the drafter keeps KV of its own: look-ahead slots, and a hit gives up its last block

	Connector   Connector // external KV; nil for none
	LoadFailure LoadFailurePolicy

	TestOnlyFault Fault // makes the scheduler wrong in a known way, to show that its checkers find it
}

// Validate reports every fault of the configuration, joined; nil if there is none.
func (c *Config) Validate() error {
	var errs []error
	positive := func(name string, v int) {
		if v < 1 {
			errs = append(errs, fmt.Errorf("%s %d is not positive", name, v))
		}
	}
	positive("blocks", c.Blocks)
	positive("block size", c.BlockSize)
	positive("max num seqs", c.MaxNumSeqs)
	positive("max num batched tokens", c.MaxNumBatchedTokens)
	if c.Blocks > math.MaxInt32-1 {
		errs = append(errs, fmt.Errorf("blocks %d exceed the block ids", c.Blocks))
	}
	if c.MaxModelLen < 2 {
		errs = append(errs, fmt.Errorf("max model len %d leaves no room for a prompt and an output token", c.MaxModelLen))
	}
	if c.LongPrefillThreshold < 0 {
		errs = append(errs, fmt.Errorf("long prefill threshold %d is negative", c.LongPrefillThreshold))
	}
	if c.Watermark < 0 || c.Watermark > 1 {
		errs = append(errs, fmt.Errorf("watermark %g is not between 0 and 1", c.Watermark))
	}
	if c.PipelineDepth < 0 || c.MaxLoRAs < 0 || c.SpecTokens < 0 {
		errs = append(errs, fmt.Errorf("pipeline depth %d, max LoRAs %d or spec tokens %d is negative",
			c.PipelineDepth, c.MaxLoRAs, c.SpecTokens))
	}
	if len(c.Groups) > 256 {
		errs = append(errs, fmt.Errorf("%d cache groups exceed 256", len(c.Groups)))
	}
	return errors.Join(errs...)
}

// depth returns the number of steps in flight at once.
func (c *Config) depth() int { return max(c.PipelineDepth, 1) }

// lookahead returns the slots a running request needs beyond the tokens of the step.
func (c *Config) lookahead() int {
	if c.DraftKV {
		return c.SpecTokens
	}
	return 0
}

// cacheConfig returns the shape of the KV cache.
func (c *Config) cacheConfig() kv.Config {
	return kv.Config{
		Blocks: c.Blocks + 1, BlockSize: c.BlockSize, Caching: !c.NoPrefixCaching, DropLast: c.DraftKV,
		Groups: c.Groups, Events: c.KVEvents, Evictions: c.Connector != nil, MaxTokens: c.MaxModelLen,
		MaxInFlight: c.MaxNumBatchedTokens * c.depth(), Seed: c.HashSeed,
	}
}

// BlocksFor returns how many blocks so many tokens take, in as few requests as MaxModelLen allows: one a block size where all
// layers keep the whole context; of a windowed group what each request holds of it at most.
func (c *Config) BlocksFor(tokens int) int {
	k := c.cacheConfig()
	k.Groups = nil
	if len(c.Groups) == 0 {
		return k.MostBlocks(tokens)
	}
	blocks := 0
	for _, g := range c.Groups {
		if g.Window == 0 {
			blocks += (tokens + c.BlockSize - 1) / c.BlockSize
			continue
		}
		k.Groups = []kv.Group{g}
		blocks += tokens/c.MaxModelLen*k.MostBlocks(c.MaxModelLen) + k.MostBlocks(tokens%c.MaxModelLen)
	}
	return blocks
}

// Refusal is why a request can never be served, whatever becomes of the others.
type Refusal struct {
	Reason RefusalReason
	Have   int // tokens asked for
	Limit  int // the most that would have been served
}

// RefusalReason names the limit a refused request ran into.
type RefusalReason uint8

// The reasons for refusal.
const (
	EmptyPrompt     RefusalReason = iota + 1
	ExceedsModelLen               // the prompt leaves no room for an output token within MaxModelLen
	ExceedsKVCache                // the prompt does not fit the empty cache
	ExceedsBudget                 // without chunked prefill, the prompt does not fit a step
	DuplicateID                   // a live request has this id
)

// Error says what was asked and what the limit is.
func (r *Refusal) Error() string {
	switch r.Reason {
	case EmptyPrompt:
		return "prompt is empty"
	case ExceedsModelLen:
		return fmt.Sprintf("prompt of %d tokens exceeds the model's context: at most %d leave room for an output token", r.Have, r.Limit)
	case ExceedsKVCache:
		return fmt.Sprintf("prompt of %d tokens exceeds the KV cache of %d", r.Have, r.Limit)
	case ExceedsBudget:
		return fmt.Sprintf("prompt of %d tokens exceeds the step budget of %d, and chunked prefill is off", r.Have, r.Limit)
	case DuplicateID:
		return "request id is in use"
	}
	return fmt.Sprintf("refused: reason %d, %d of at most %d", r.Reason, r.Have, r.Limit)
}
