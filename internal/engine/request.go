package engine

import (
	"errors"
	"fmt"

	"github.com/quire-ai/quire/internal/sample"
)

// Token is an output token, with log probabilities if they were asked for.
type Token = sample.Token

// Request is what a client asks for. Submit copies it; the prompt is shared and must not be changed afterwards.
type Request struct {
	// ClientID is the client's own name for the request. It appears in logs only and need not be unique.
	ClientID string
	// Prompt has at least one token.
	Prompt []int32
	// MaxTokens is the most output tokens; 0 asks for as many as the context holds.
	MaxTokens int
	// MinTokens is the number of output tokens before which neither EOS nor a stop token ends the request.
	MinTokens int
	// EOS are the model's end-of-generation ids; each ends the request unless IgnoreEOS.
	EOS       []int32
	IgnoreEOS bool
	// StopTokenIDs end the request too, whatever IgnoreEOS says.
	StopTokenIDs []int32
	// Priority orders requests under the priority policy: smaller is more urgent.
	Priority int
	// CacheSalt separates prefix caches: requests with different salts share no block.
	CacheSalt string
	// CacheHitThreshold, 0 … 1, ends the request with sched.ReasonCacheThreshold, without a token, if a smaller share of the
	// prompt is found in the prefix cache and the tiers behind it when its turn comes. 0 always runs it.
	CacheHitThreshold float64
	// Sampling says how tokens are chosen. MinTokens and StopIDs in it are filled in by Submit.
	Sampling sample.Params
}

// Errors of Submit and of a Handle.
var (
	// ErrDraining refuses a request because the engine is shutting down.
	ErrDraining = errors.New("engine is draining and accepts no new requests")
	// ErrClosed ends what was left when the engine was closed.
	ErrClosed = errors.New("engine is closed")
	// ErrEmptyPrompt refuses a request without a token to start from.
	ErrEmptyPrompt = errors.New("prompt is empty")
	// ErrCacheInUse refuses to forget cached prefixes while requests use blocks.
	ErrCacheInUse = errors.New("the prefix cache cannot be reset")
)

// TooLongError refuses a request that can never be served, however long it waited.
type TooLongError struct {
	Prompt    int    // tokens
	MaxTokens int    // output tokens asked for, if prompt and output together are too long; else 0
	Limit     int    // tokens
	Resource  string // "KV cache" or "context"
}

func (e *TooLongError) Error() string {
	if e.MaxTokens > 0 {
		return fmt.Sprintf("prompt of %d tokens and %d output tokens exceed the %s of %d", e.Prompt, e.MaxTokens, e.Resource, e.Limit)
	}
	return fmt.Sprintf("prompt of %d tokens exceeds the %s of %d", e.Prompt, e.Resource, e.Limit)
}

// QueueFullError refuses a request because too many wait already. The client may try again later.
type QueueFullError struct {
	What  string // "requests" or "prompt tokens"
	Have  int    // waiting, this request included
	Limit int
}

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("queue is full: %d %s would wait, the limit is %d", e.Have, e.What, e.Limit)
}

// FailedError is the end of the engine: a fault in Quire itself. Every request gets it, and so does every later Submit.
type FailedError struct {
	Cause any    // the value of the panic
	Stack []byte // of the loop
}

func (e *FailedError) Error() string { return fmt.Sprintf("engine failed: %v", e.Cause) }
