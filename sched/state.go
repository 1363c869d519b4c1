package sched

import (
	"fmt"

	"github.com/quire-ai/quire/internal/invariant"
)

// State is where a request stands in its life. The zero value is a request that was not added yet.
type State uint8

// The states, under vLLM's names.
const (
	StateNew State = iota
	Waiting
	WaitingForGrammar
	WaitingForRemoteKVs
	Running
	Preempted
	FinishedStopped
	FinishedLength
	FinishedAborted
	FinishedError
	FinishedCacheThreshold

	stateCount = int(FinishedCacheThreshold) + 1
)

func stateNames() [stateCount]string {
	return [stateCount]string{
		"NEW", "WAITING", "WAITING_FOR_GRAMMAR", "WAITING_FOR_REMOTE_KVS", "RUNNING", "PREEMPTED",
		"FINISHED_STOPPED", "FINISHED_LENGTH", "FINISHED_ABORTED", "FINISHED_ERROR",
		"FINISHED_CACHE_THRESHOLD",
	}
}

// String returns vLLM's name of the state.
func (s State) String() string {
	if int(s) < stateCount {
		return stateNames()[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Finished tells whether the request has had its terminal answer.
func (s State) Finished() bool { return s >= FinishedStopped }

// Next returns the states that may follow s, in order.
func (s State) Next() []State {
	var next []State
	for to := State(0); int(to) < stateCount; to++ {
		if s.mayBecome(to) {
			next = append(next, to)
		}
	}
	return next
}

// mayBecome is the table of legal moves.
//
// A request that waits for external KV comes back as what it was: WAITING if it never ran, PREEMPTED if it did, so that
// it resumes and is not taken for new (vLLM #31583).
func (s State) mayBecome(to State) bool {
	const ended = 1<<FinishedAborted | 1<<FinishedError
	const stopped = 1<<FinishedStopped | 1<<FinishedLength
	var legal uint
	switch s {
	case StateNew:
		legal = 1<<Waiting | 1<<WaitingForGrammar
	case WaitingForGrammar:
		legal = 1<<Waiting | ended
	case Waiting:
		legal = 1<<Running | 1<<WaitingForRemoteKVs | 1<<FinishedCacheThreshold | ended
	case WaitingForRemoteKVs:
		legal = 1<<Waiting | 1<<Preempted | ended
	case Running:
		legal = 1<<Preempted | stopped | ended
	case Preempted: // stopped: by tokens that were in flight when it was preempted
		legal = 1<<Running | 1<<WaitingForRemoteKVs | stopped | ended
	}
	return legal>>to&1 == 1
}

// move is the one place where a state is set. It checks the table and records the Change.
func (s *Scheduler) move(r *request, to State) {
	if !r.state.mayBecome(to) {
		invariant.Broken("request %s may not move from %v to %v", r.ID, r.state, to)
	}
	s.changes = append(s.changes, Change{Kind: Moved, ID: r.ID, From: r.state, To: to, Epoch: r.epoch, Position: r.computed})
	r.state, r.since = to, s.now
}
