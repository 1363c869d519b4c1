package engine

import (
	"time"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// Observer is told what the engine does, for metrics, logs and timelines. Any function may be nil. All are called by the
// loop, in the order of events, and must return at once.
type Observer struct {
	// Change reports each decision of the scheduler.
	Change func(sched.Change)
	// Step reports each step when it has ended.
	Step func(StepInfo)
	// FirstToken reports a request's first token, when it is there.
	FirstToken func(FirstTokenInfo)
	// NextToken reports the time between a token and the one before.
	NextToken func(time.Duration)
	// Finished reports the end of each request that Submit accepted, exactly once.
	Finished func(FinishInfo)
	// KVEvents reports what the prefix cache, and memory behind it, gained and lost by a step that has ended; not called when
	// that is nothing. The slice is the loop's and used again, what the events hold is not. Without it none are recorded.
	KVEvents func([]kv.Event)
}

// FirstTokenInfo describes how a request came to its first token.
type FirstTokenInfo struct {
	Wait         time.Duration // from its arrival
	PromptTokens int
	CachedTokens int // of the prompt, found in the prefix cache or brought from a tier behind it
	LoadedTokens int // of these, brought from a tier
}

// StepInfo describes one step of the engine.
type StepInfo struct {
	Step     uint64
	Start    time.Time
	Duration time.Duration // of the executor's part
	Requests int           // planned
	Tokens   int           // computed: prompt tokens and decoded ones
	Sampled  int           // new tokens
	Err      error         // of the whole step
}

// FinishInfo describes the life of one request. A time is zero if the request did not get there.
type FinishInfo struct {
	ID       string
	ClientID string
	Finish
	MaxTokens int
	Err       error

	Arrival    time.Time // at Submit
	Scheduled  time.Time // first part of a step
	FirstToken time.Time
	LastToken  time.Time
	End        time.Time
}
