package record

import (
	"bufio"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/quire-ai/quire/sched"
)

// Scheduler is a sched.Scheduler that writes down what it is given and what it decides. With a nil writer it only passes
// on. Like the scheduler, it belongs to one goroutine.
type Scheduler struct {
	*sched.Scheduler

	out  *bufio.Writer // nil when nothing is recorded, or no more
	err  error         // why nothing is recorded any more
	plan plan          // used again
}

// New makes a scheduler. If w is not nil, all that follows is recorded in it; Flush writes out what is buffered.
func New(cfg sched.Config, w io.Writer) *Scheduler {
	s := &Scheduler{}
	if w == nil {
		s.Scheduler = sched.New(cfg)
		return s
	}
	s.out = bufio.NewWriterSize(w, 1<<16)
	written := cfg
	written.Connector = nil
	s.write(&line{Version: version, Config: &written, Connector: cfg.Connector != nil})
	if cfg.Connector != nil {
		cfg.Connector = recordingConnector{s, cfg.Connector}
	}
	s.Scheduler = sched.New(cfg)
	return s
}

// Apply records and applies an event.
func (s *Scheduler) Apply(ev sched.Event) []sched.Change {
	if s.out != nil {
		l, err := lineOf(ev)
		if err != nil {
			s.stop(err)
		}
		s.write(&l)
	}
	return s.Scheduler.Apply(ev)
}

// Schedule records the time, makes the next plan and records that.
func (s *Scheduler) Schedule(now float64) *sched.Plan {
	if s.out == nil {
		return s.Scheduler.Schedule(now)
	}
	at := now // of its own, so that without a record nothing is allocated
	s.write(&line{Schedule: &at})
	full := s.Scheduler.Schedule(now)
	s.plan.set(full)
	s.write(&line{Plan: &s.plan})
	return full
}

// Flush writes out what is buffered. It returns the first error there was: recording stops at an error, the scheduler
// does not.
func (s *Scheduler) Flush() error {
	if s.out != nil {
		if err := s.out.Flush(); err != nil {
			s.stop(err)
		}
	}
	return s.err
}

func (s *Scheduler) write(l *line) {
	if s.out == nil {
		return
	}
	if err := json.MarshalWrite(s.out, l); err != nil {
		s.stop(err)
		return
	}
	if err := s.out.WriteByte('\n'); err != nil {
		s.stop(err)
	}
}

func (s *Scheduler) stop(err error) {
	if s.err == nil {
		s.err = fmt.Errorf("record schedule: %w", err)
	}
	s.out = nil
}

// recordingConnector writes down a connector's answers, in the order in which the scheduler asks.
type recordingConnector struct {
	s    *Scheduler
	next sched.Connector
}

// Match passes the question on and records the answer.
func (c recordingConnector) Match(q sched.MatchQuery) sched.Match {
	m := c.next.Match(q)
	c.s.write(&line{Match: &m})
	return m
}

// Finished passes the news on and records the answer.
func (c recordingConnector) Finished(id sched.RequestID, epoch sched.Epoch, reason sched.Reason) bool {
	hold := c.next.Finished(id, epoch, reason)
	c.s.write(&line{Hold: &hold})
	return hold
}
