package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quire-ai/quire/sched"
)

// Result is what a replay found.
type Result struct {
	Requests int // added
	Plans    int // made and compared
	Stats    sched.Stats
	Cut      bool // the record ends within a line: its writer was killed
}

// DifferenceError says that a replay decided otherwise than the record: the scheduler's code has changed since, or it is
// not pure.
type DifferenceError struct {
	Line      int
	Got, Want any
}

func (e *DifferenceError) Error() string {
	return fmt.Sprintf("replay: line %d: plan %+v; the record has %+v", e.Line, e.Got, e.Want)
}

// Replay feeds a record to a fresh scheduler and compares each plan with the recorded one. The error is a
// *DifferenceError at the first that differs. A record in which events come as no engine would send them, one that was
// edited say, breaks the scheduler's invariants: that is an error of the record here.
func Replay(r io.Reader) (res Result, err error) {
	p := player{in: bufio.NewReaderSize(r, 1<<16)}
	defer func() {
		if cause := recover(); cause != nil {
			res, err = p.res, fmt.Errorf("replay: line %d: %v", p.line, cause)
		}
	}()
	first, err := p.next()
	if err != nil {
		return p.res, fmt.Errorf("replay: header: %w", noEOF(err))
	}
	if first.Version != version || first.Config == nil {
		return p.res, fmt.Errorf("replay: version %d of the format, this program reads version %d", first.Version, version)
	}
	cfg := *first.Config
	if err := cfg.Validate(); err != nil {
		return p.res, fmt.Errorf("replay: configuration: %w", err)
	}
	if first.Connector {
		cfg.Connector = replayedConnector{&p}
	}
	p.sched = sched.New(cfg)
	for {
		l, err := p.next()
		if errors.Is(err, io.EOF) {
			p.res.Stats = p.sched.Stats()
			return p.res, nil
		}
		if err != nil {
			return p.res, fmt.Errorf("replay: line %d: %w", p.line, err)
		}
		if err := p.play(l); err != nil {
			return p.res, err
		}
	}
}

// player is a replay under way.
type player struct {
	in    *bufio.Reader
	line  int
	sched *sched.Scheduler
	res   Result
	err   error // of a connector's answer, which cannot return one
}

// next reads a line. A last line without its end, which a killed writer leaves, is the end of the record.
func (p *player) next() (*line, error) {
	text, err := p.in.ReadBytes('\n')
	if err != nil {
		p.res.Cut = p.res.Cut || len(text) > 0 && errors.Is(err, io.EOF)
		return nil, err
	}
	p.line++
	l := new(line)
	if err := json.Unmarshal(text, l, jsontext.AllowDuplicateNames(false)); err != nil {
		return nil, err
	}
	return l, nil
}

func (p *player) play(l *line) error {
	if l.Schedule != nil {
		return p.schedule(*l.Schedule)
	}
	ev := l.event()
	if ev == nil {
		return fmt.Errorf("replay: line %d: neither an event nor a call of schedule", p.line)
	}
	if l.Add != nil {
		p.res.Requests++
	}
	p.sched.Apply(ev)
	return p.err
}

// schedule makes a plan and compares it with the recorded one.
func (p *player) schedule(now float64) error {
	var got plan
	got.set(p.sched.Schedule(now))
	if p.err != nil {
		return p.err
	}
	l, err := p.next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("replay: line %d: %w", p.line, err)
	}
	if l.Plan == nil {
		return fmt.Errorf("replay: line %d: a plan was expected", p.line)
	}
	p.res.Plans++
	if !samePlan(&got, l.Plan) {
		return &DifferenceError{Line: p.line, Got: got, Want: *l.Plan}
	}
	return nil
}

// samePlan compares two plans; an empty list is as good as none.
func samePlan(a, b *plan) bool {
	if a.Step != b.Step || !slices.Equal(a.Preempted, b.Preempted) || !slices.Equal(a.Finished, b.Finished) {
		return false
	}
	return slices.EqualFunc(a.Rows, b.Rows, sameRow)
}

func sameRow(a, b row) bool {
	return a.ID == b.ID && a.Kind == b.Kind && a.From == b.From && a.N == b.N && slices.Equal(a.Blocks, b.Blocks) &&
		slices.EqualFunc(a.More, b.More, slices.Equal)
}

// replayedConnector gives the recorded answers again.
type replayedConnector struct{ p *player }

// Match returns the next recorded answer.
func (c replayedConnector) Match(sched.MatchQuery) sched.Match {
	if l := c.p.answer(); l != nil && l.Match != nil {
		return *l.Match
	}
	c.p.fail("the connector's answer to a match")
	return sched.Match{}
}

// Finished returns the next recorded answer.
func (c replayedConnector) Finished(sched.RequestID, sched.Epoch, sched.Reason) bool {
	if l := c.p.answer(); l != nil && l.Hold != nil {
		return *l.Hold
	}
	c.p.fail("the connector's answer to a request's end")
	return false
}

func (p *player) answer() *line {
	l, err := p.next()
	if err != nil {
		return nil
	}
	return l
}

func (p *player) fail(want string) {
	if p.err == nil {
		p.err = fmt.Errorf("replay: line %d: %s was expected", p.line, want)
	}
}

// noEOF turns the end of an empty file into an error that says so.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
