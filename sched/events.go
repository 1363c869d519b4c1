package sched

import "github.com/quire-ai/quire/kv"

// Event is something that happened outside, handed to Apply. StepDone, which comes every step, is best handed in as a
// pointer that is used again, so that nothing is allocated.
type Event interface{ isEvent() }

// AddRequest adds a request, or refuses it for good.
type AddRequest struct{ Request *Request }

// Abort ends a request in whatever state it is. Unknown and finished ids are ignored.
type Abort struct{ ID RequestID }

// StepDone returns a plan's outputs. Steps are returned in the order in which they were planned. A plan without requests
// has no outputs and may be returned or not: what else a step's end settles (bad blocks, faulty grammars) is settled with
// its StepDone or with the next one.
type StepDone struct {
	Step    uint64
	Outputs []StepOutput // in plan order; rows that sampled nothing may be left out
	Err     string       // the whole step failed: every request in it ends with this error
	Bad     []kv.BlockID // blocks that synchronous loads of the step could not fill
}

// StepOutput is what one request's row gave.
type StepOutput struct {
	ID     RequestID
	Tokens []int32 // sampled: one, or with drafts the accepted ones and one more
	Drafts []int32 // to verify in the next step
	Err    string  // this row failed: the request ends with this error, the others go on
}

// LoadDone ends a load, once, whether it brought all blocks or not.
type LoadDone struct {
	ID    RequestID
	Epoch Epoch
	Bad   []kv.BlockID // blocks that could not be filled
}

// SendDone ends the transfer for which Connector.Finished kept a request's blocks.
type SendDone struct {
	ID    RequestID
	Epoch Epoch
}

// GrammarReady ends a request's wait for its grammar; with Err, the grammar is faulty and the request fails.
type GrammarReady struct {
	ID  RequestID
	Err string
}

// ResetPrefixCache forgets all cached prefixes. Without Running it does so only if no block is in use. With Running
// every running request is preempted first and its tokens in flight are discarded: after new weights, say.
type ResetPrefixCache struct{ Running bool }

// Pause sets how much the scheduler does.
type Pause struct{ Level PauseLevel }

// PauseLevel says what a paused scheduler still does.
type PauseLevel uint8

// The levels.
const (
	Unpaused  PauseLevel = iota
	PausedNew            // admit nothing; running requests go on
	PausedAll            // plan nothing
)

func (AddRequest) isEvent()       {}
func (Abort) isEvent()            {}
func (StepDone) isEvent()         {}
func (LoadDone) isEvent()         {}
func (SendDone) isEvent()         {}
func (GrammarReady) isEvent()     {}
func (ResetPrefixCache) isEvent() {}
func (Pause) isEvent()            {}
