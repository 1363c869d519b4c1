package record

import (
	"fmt"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// version of the format. A reader refuses any other.
const version = 1

// line is one line of a record; exactly one member is set, but in the header.
type line struct {
	Version   int           `json:"version,omitzero"`
	Config    *sched.Config `json:"config,omitzero"`
	Connector bool          `json:"connector,omitzero"` // the scheduler had one, whose answers follow as match and hold

	Add      *sched.Request          `json:"add,omitzero"`
	Abort    *sched.RequestID        `json:"abort,omitzero"`
	Done     *sched.StepDone         `json:"done,omitzero"`
	LoadDone *sched.LoadDone         `json:"load_done,omitzero"`
	SendDone *sched.SendDone         `json:"send_done,omitzero"`
	Grammar  *sched.GrammarReady     `json:"grammar,omitzero"`
	Reset    *sched.ResetPrefixCache `json:"reset,omitzero"`
	Pause    *sched.Pause            `json:"pause,omitzero"`

	Match *sched.Match `json:"match,omitzero"`
	Hold  *bool        `json:"hold,omitzero"`

	Schedule *float64 `json:"schedule,omitzero"`
	Plan     *plan    `json:"plan,omitzero"`
}

// plan is a sched.Plan in short.
type plan struct {
	Step      uint64            `json:"step"`
	Rows      []row             `json:"rows,omitempty"`
	Preempted []sched.RequestID `json:"preempted,omitempty"`
	Finished  []sched.RequestID `json:"finished,omitempty"`
}

// row is one planned request.
type row struct {
	ID     sched.RequestID `json:"id"`
	Kind   sched.Kind      `json:"kind"`
	From   int             `json:"from"`
	N      int             `json:"n"`
	Blocks []kv.BlockID    `json:"blocks,omitempty"`

	More [][]kv.BlockID `json:"more,omitempty"` // MoreBlocks
}

// set makes p the short form of full, reusing its memory.
func (p *plan) set(full *sched.Plan) {
	p.Step, p.Rows = full.Step, p.Rows[:0]
	p.Preempted, p.Finished = full.Preempted, full.Finished
	for i := range full.Requests {
		r := &full.Requests[i]
		p.Rows = append(p.Rows, row{ID: r.ID, Kind: r.Kind, From: r.From, N: r.N, Blocks: r.Blocks, More: r.MoreBlocks})
	}
}

// lineOf wraps an event.
func lineOf(ev sched.Event) (line, error) {
	switch e := ev.(type) {
	case sched.AddRequest:
		return line{Add: e.Request}, nil
	case sched.Abort:
		return line{Abort: &e.ID}, nil
	case *sched.StepDone:
		return line{Done: e}, nil
	case sched.StepDone:
		return line{Done: &e}, nil
	case sched.LoadDone:
		return line{LoadDone: &e}, nil
	case sched.SendDone:
		return line{SendDone: &e}, nil
	case sched.GrammarReady:
		return line{Grammar: &e}, nil
	case sched.ResetPrefixCache:
		return line{Reset: &e}, nil
	case sched.Pause:
		return line{Pause: &e}, nil
	}
	return line{}, fmt.Errorf("record: unknown event %T", ev)
}

// event unwraps what lineOf wrapped; nil if the line holds no event.
func (l *line) event() sched.Event {
	switch {
	case l.Add != nil:
		return sched.AddRequest{Request: l.Add}
	case l.Abort != nil:
		return sched.Abort{ID: *l.Abort}
	case l.Done != nil:
		return l.Done
	case l.LoadDone != nil:
		return *l.LoadDone
	case l.SendDone != nil:
		return *l.SendDone
	case l.Grammar != nil:
		return *l.Grammar
	case l.Reset != nil:
		return *l.Reset
	case l.Pause != nil:
		return *l.Pause
	}
	return nil
}
