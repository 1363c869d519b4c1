package sim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/quire-ai/quire/sched"
)

// Exploration is an exhaustive search over all interleavings of a few events on a tiny machine: requests arrive, plans are
// made and returned, loads end. All that may happen at any time, and once a load is in flight it may stay there as long as it
// likes: a late load, and one that is lost until its deadline, which then fails.
type Exploration struct {
	Name     string
	Pool     string   // the words behind the command pool
	Requests []string // each the words behind the command add, the id first; they may arrive in any order, or never
	External []string // each the words behind the command external, given at the start
	Aborts   int      // how many aborts there may be, at any time
	Resets   int      // how many resets of the prefix cache, with running requests
	Fails    int      // how many asynchronous loads may fail, wholly; how many synchronous ones do is given in External
	Rows     int      // how many rows of steps may fail
	Fault    sched.Fault
	Most     int // states after which the search gives up
	Large    bool
}

// Found is what an exploration came to.
type Found struct {
	States, Edges int
	Actions       map[string]int // edges by what happens: add, schedule, spoil, done, load-done, load-fail, abort, reset
	Play          []string       // the commands that lead to a fault, empty if there is none
	Fault         string
}

// explorer is a breadth-first search: a state is reached by the shortest play.
type explorer struct {
	e       *Exploration
	states  []node
	index   map[[16]byte]int32
	edges   int
	actions map[string]int
}

// node is a state: how it was reached, and where each of its actions leads.
type node struct {
	parent  int32
	action  string
	actions []string // what may happen next, until it was tried
	next    []edge
	done    bool     // nothing is left to run: everybody who arrived has ended
	flying  bool     // a plan is in flight
	loads   []string // in flight
}

type edge struct {
	to   int32
	kind edgeKind
}

// edgeKind says who takes an edge.
type edgeKind uint8

const (
	fromOutside edgeKind = iota // an arrival, an abort, a failure: it may never come
	planMade                    // the machine itself takes this and the following ones sooner or later
	planReturned
	loadEnded
)

func kindOf(action string) edgeKind {
	switch verb(action) {
	case "schedule":
		return planMade
	case "done":
		return planReturned
	case "load-done":
		return loadEnded
	}
	return fromOutside
}

// verb returns the kind of an action: its first word.
func verb(action string) string {
	first, _, _ := strings.Cut(action, " ")
	return first
}

// Explore searches all states. It stops at the first broken invariant, wrong text or lost answer, and then looks for
// cycles in which the machine works for ever and nobody gets on. It returns early, with ctx's error, when ctx ends.
func Explore(ctx context.Context, e Exploration) (found Found, err error) {
	x := &explorer{e: &e, index: map[[16]byte]int32{}, actions: map[string]int{}}
	first := x.try(nil)
	if first.err != nil {
		return x.fail(0, "", first.err), nil
	}
	x.enter(&first)
	for at := 0; at < len(x.states); {
		if err := ctx.Err(); err != nil {
			return x.found(), err
		}
		if len(x.states) > e.Most {
			return x.found(), fmt.Errorf("explore %s: more than %d states", e.Name, e.Most)
		}
		end := min(len(x.states), at+1024)
		for i, tries := range x.tryAll(at, end) {
			for j := range tries {
				if t := &tries[j]; t.err != nil {
					return x.fail(int32(at+i), t.action, t.err), nil
				}
				x.join(int32(at+i), &tries[j])
			}
			x.states[at+i].actions = nil
		}
		at = end
	}
	if at := x.livelock(); at >= 0 {
		return x.fail(at, "", errors.New("from here the machine works for ever and nobody gets on")), nil
	}
	return x.found(), nil
}

func (x *explorer) found() Found {
	return Found{States: len(x.states), Edges: x.edges, Actions: x.actions}
}

// fail returns the play that leads to a fault.
func (x *explorer) fail(at int32, action string, err error) Found {
	found := x.found()
	found.Play = append([]string{"pool " + x.e.Pool}, prefixed("external ", x.e.External)...)
	found.Play = append(found.Play, x.path(at)...)
	if action != "" {
		found.Play = append(found.Play, action)
	}
	found.Fault = err.Error()
	return found
}

func prefixed(prefix string, words []string) []string {
	var out []string
	for _, w := range words {
		out = append(out, prefix+w)
	}
	return out
}

// path returns the actions that lead to a state.
func (x *explorer) path(at int32) []string {
	var path []string
	for ; at > 0; at = x.states[at].parent {
		path = append(path, x.states[at].action)
	}
	slices.Reverse(path)
	return path
}

// attempt is an action tried, and the state it leads to.
type attempt struct {
	node
	key [16]byte
	err error
}

// tryAll tries every action of the states from at to end−1, on all cores. It reads the explorer only.
func (x *explorer) tryAll(at, end int) [][]attempt {
	tries := make([][]attempt, end-at)
	var workers sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for w := range cores {
		workers.Go(func() {
			for i := at + w; i < end; i += cores {
				path := slices.Clip(x.path(int32(i)))
				for _, action := range x.states[i].actions {
					tries[i-at] = append(tries[i-at], x.try(append(path, action)))
				}
			}
		})
	}
	workers.Wait()
	return tries
}

// join enters the state that an action of the state at led to, if it is new, and the edge to it.
func (x *explorer) join(at int32, t *attempt) {
	to, ok := x.index[t.key]
	if !ok {
		t.parent = at
		to = x.enter(t)
	}
	x.edges++
	x.actions[verb(t.action)]++
	x.states[at].next = append(x.states[at].next, edge{to, kindOf(t.action)})
}

func (x *explorer) enter(t *attempt) int32 {
	at := int32(len(x.states))
	x.index[t.key] = at
	x.states = append(x.states, t.node)
	return at
}

// try plays a path from the start and describes the state it leads to.
func (x *explorer) try(path []string) (t attempt) {
	if len(path) > 0 {
		t.action = path[len(path)-1]
	}
	p, err := x.perform(path)
	if err != nil {
		t.err = err
		return t
	}
	t.done, t.flying, t.loads = true, len(p.flying) > 0, p.loading()
	for _, r := range p.specs {
		t.done = t.done && r.end != nil
	}
	t.done = t.done && !t.flying && len(t.loads) == 0
	t.actions = x.next(p, path)
	t.key = x.fingerprint(p, path)
	return t
}

// perform plays the actions from the start. All but the last have been played before.
func (x *explorer) perform(path []string) (p *play, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	p = &play{fault: x.e.Fault, known: true}
	do := func(line string) {
		fields := strings.Fields(line)
		if e := p.command(fields[0], newArguments(fields[1:])); e != nil && err == nil {
			err = e
		}
	}
	do("pool " + x.e.Pool)
	for _, w := range x.e.External {
		do("external " + w)
	}
	for i, line := range path {
		p.known = i < len(path)-1
		do(line)
	}
	if err == nil {
		err = p.s.Audit()
	}
	if i := strings.Index(p.out.String(), "FAULT"); i >= 0 && err == nil {
		err = errors.New(strings.TrimSpace(p.out.String()[i:]))
	}
	return p, err
}

// fingerprint describes the scheduler, the toy's memory and what may still happen.
func (x *explorer) fingerprint(p *play, path []string) [16]byte {
	f := p.s.AppendFingerprint(nil)
	f = append(f, p.toy.fingerprint(p.s)...)
	for _, w := range x.e.Requests {
		id, _, _ := strings.Cut(w, " ")
		if r := p.specs[sched.RequestID(id)]; r != nil {
			f = fmt.Appendf(f, "%s %d %t;", id, len(r.text), r.end != nil)
		}
	}
	for _, flight := range p.flying {
		f = fmt.Append(f, flight.outputs, len(flight.bad))
	}
	for _, w := range x.e.External {
		id, _, _ := strings.Cut(w, " ")
		f = fmt.Append(f, p.store.fails[sched.RequestID(id)])
	}
	f = fmt.Append(f, p.loading(), count(path, "abort"), count(path, "reset"), count(path, "load-fail"))
	f = fmt.Append(f, count(path, "spoil"), x.maySpoil(path))
	sum := sha256.Sum256(f)
	return [16]byte(sum[:16])
}

// next returns what may happen after path.
func (x *explorer) next(p *play, path []string) []string {
	var actions []string
	if len(p.flying) < max(p.cfg.PipelineDepth, 1) {
		actions = append(actions, "schedule quiet")
	}
	if len(p.flying) > 0 {
		actions = append(actions, "done quiet")
	}
	if len(p.flying) > 0 && x.maySpoil(path) {
		for _, row := range p.flying[len(p.flying)-1].rows {
			actions = append(actions, "spoil "+string(row.id))
		}
	}
	for _, w := range x.e.Requests {
		id, _, _ := strings.Cut(w, " ")
		r := p.specs[sched.RequestID(id)]
		if r == nil {
			actions = append(actions, "add "+w)
			continue
		}
		if r.end == nil && count(path, "abort") < x.e.Aborts {
			actions = append(actions, "abort "+id)
		}
	}
	for _, id := range p.loading() {
		actions = append(actions, "load-done "+id)
		if count(path, "load-fail") < x.e.Fails {
			actions = append(actions, "load-fail "+id)
		}
	}
	if count(path, "reset") < x.e.Resets {
		actions = append(actions, "reset running")
	}
	return actions
}

// maySpoil tells whether a row of the plan that was just made may fail: it does so when it is computed, which is at once.
func (x *explorer) maySpoil(path []string) bool {
	return count(path, "spoil") < x.e.Rows && len(path) > 0 && verb(path[len(path)-1]) == "schedule"
}

func count(path []string, kind string) int {
	n := 0
	for _, line := range path {
		if verb(line) == kind {
			n++
		}
	}
	return n
}

// livelock returns a state on a cycle of the machine's own actions on which nobody gets on: tokens and ends are part of the
// state, so a cycle has none. It is not simply the end, and it is fair: no load and no plan stays in flight all the time,
// since they would come back. −1 if there is none.
func (x *explorer) livelock() int32 {
	for _, component := range x.components() {
		first := &x.states[component[0]]
		if first.done || !x.cyclic(component) || x.leavesPlanInFlight(component) {
			continue
		}
		pending := slices.Clone(first.loads)
		for _, at := range component {
			pending = slices.DeleteFunc(pending, func(id string) bool { return !slices.Contains(x.states[at].loads, id) })
		}
		if len(pending) == 0 {
			return slices.Min(component)
		}
	}
	return -1
}

// cyclic tells whether the component holds a cycle: more than one state, or an edge of the machine's own to itself.
func (x *explorer) cyclic(component []int32) bool {
	if len(component) > 1 {
		return true
	}
	at := component[0]
	return slices.ContainsFunc(x.states[at].next, func(e edge) bool { return e.kind != fromOutside && e.to == at })
}

// leavesPlanInFlight tells whether in every state of the component a plan is in flight, and none is returned within it.
func (x *explorer) leavesPlanInFlight(component []int32) bool {
	inside := make(map[int32]bool, len(component))
	for _, at := range component {
		inside[at] = true
	}
	for _, at := range component {
		returned := func(e edge) bool { return e.kind == planReturned && inside[e.to] }
		if !x.states[at].flying || slices.ContainsFunc(x.states[at].next, returned) {
			return false
		}
	}
	return true
}
