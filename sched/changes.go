package sched

import "fmt"

// ChangeKind says what a Change reports.
type ChangeKind uint8

// The kinds of change.
const (
	Moved     ChangeKind = iota + 1 // From, To; Position is the computed count
	Emitted                         // Token at Position of the output
	Finished                        // Reason; StopToken if a stop token ended it; Err if an error did
	Refused                         // Err is a *Refusal; the request never lived
	Released                        // Blocks given back
	Withdrawn                       // a victim left the plan of this very step; Blocks hashes were taken back
	Loading                         // an external load of Blocks blocks began in Epoch
	Stale                           // a completion of an old Epoch, or of nothing known, was ignored
	Reset                           // the prefix cache was reset; Err if that was refused
	Recovered                       // the recovery pass acted; Note says how
)

// Reason is why a request finished.
type Reason uint8

// The finish reasons.
const (
	ReasonStop Reason = iota + 1
	ReasonLength
	ReasonAbort
	ReasonError
	ReasonCacheThreshold // too little of the prompt was found: see Request.CacheHitThreshold
)

// String returns the API's word for the reason.
func (r Reason) String() string {
	switch r {
	case ReasonStop:
		return "stop"
	case ReasonLength:
		return "length"
	case ReasonAbort:
		return "abort"
	case ReasonError:
		return "error"
	case ReasonCacheThreshold:
		return "cache_threshold"
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Change is one thing that happened to a request. Logs, metrics, timelines and golden files all read Changes. Which
// fields mean something depends on Kind.
type Change struct {
	Kind     ChangeKind
	ID       RequestID
	From, To State
	Epoch    Epoch

	Token    int32
	Position int // of the token among the outputs, from 0

	Reason    Reason
	StopToken int32 // the stop token id that ended the request
	Stopped   bool  // StopToken is set: the end came by StopTokenIDs, not by EOS

	Outputs     int // Finished: output tokens in all
	Preemptions int // Finished: how often it was preempted
	Cached      int // Finished by ReasonCacheThreshold: prompt tokens found

	Blocks int
	Note   string
	Err    error

	Rule Rule // by which the decision differs from vLLM's in this state; 0 for most
}

// String renders the change on one line.
func (c Change) String() string {
	switch c.Kind {
	case Moved:
		return c.movedString()
	case Emitted:
		return fmt.Sprintf("%s token %d at %d", c.ID, c.Token, c.Position)
	case Finished:
		return c.finishedString()
	case Refused:
		return fmt.Sprintf("%s refused: %v", c.ID, c.Err)
	case Released:
		return fmt.Sprintf("%s released %d blocks", c.ID, c.Blocks)
	case Withdrawn:
		return fmt.Sprintf("%s withdrawn from this step, %d hashes taken back", c.ID, c.Blocks)
	case Loading:
		return fmt.Sprintf("%s load epoch %d, %d blocks", c.ID, c.Epoch, c.Blocks)
	case Stale:
		return fmt.Sprintf("%s stale, ignored: %s", c.ID, c.Note)
	case Reset:
		if c.Err != nil {
			return fmt.Sprintf("prefix cache not reset: %v", c.Err)
		}
		return "prefix cache reset"
	case Recovered:
		return fmt.Sprintf("%s recovery: %s", c.ID, c.Note)
	}
	return fmt.Sprintf("%s change %d", c.ID, c.Kind)
}

func (c Change) movedString() string {
	s := fmt.Sprintf("%s %v → %v", c.ID, c.From, c.To)
	if c.To == Preempted && c.From == Running {
		return fmt.Sprintf("%s epoch %d", s, c.Epoch)
	}
	if c.From == WaitingForRemoteKVs && !c.To.Finished() {
		return fmt.Sprintf("%s computed %d", s, c.Position)
	}
	return s
}

func (c Change) finishedString() string {
	s := fmt.Sprintf("%s finished: %v", c.ID, c.Reason)
	if c.Stopped {
		s += fmt.Sprintf(", token %d", c.StopToken)
	}
	if c.Reason == ReasonCacheThreshold {
		s += fmt.Sprintf(", %d tokens found", c.Cached)
	}
	if c.Err != nil {
		s += fmt.Sprintf(", %v", c.Err)
	}
	return s
}
