package sim

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quire-ai/quire/sched"
)

// Exploration is an exhaustive search over all interleavings of a few events on a tiny machine.
type Exploration struct {
	Name     string
	Pool     string   // the words behind the command pool
	Requests []string // each the words behind the command add, the id first; they may arrive in any order, or never
	External []string // each the words behind the command external, given at the start
	Aborts   int      // how many aborts there may be, at any time
	Resets   int      // how many resets of the prefix cache, with running requests
	Fails    int      // how many loads may fail, wholly
	Fault    sched.Fault
	Most     int // states after which the search gives up
	Large    bool
}

// Found is what an exploration came to.
type Found struct {
	States, Edges int
	Play          []string // the commands that lead to a fault, empty if there is none
	Fault         string
}

// explorer is a breadth-first search: a state is reached by the shortest play.
type explorer struct {
	e      *Exploration
	states []node
	index  map[[16]byte]int32
	edges  int
}

// node is a state: how it was reached, and where each of its actions leads.
type node struct {
	parent int32
	action string
	next   []edge
	done   bool     // nothing is left to run: everybody who arrived has ended
	loads  []string // in flight
	known  int      // output tokens of all requests, and requests ended: what progress is made of
}

type edge struct {
	to   int32
	fair bool // the machine itself takes it sooner or later: a step, or the end of a load
}

// Explore searches all states. It stops at the first broken invariant, wrong text or lost answer, and then looks for
// cycles in which the machine works for ever and nobody gets on.
func Explore(e Exploration) (found Found, err error) {
	x := &explorer{e: &e, index: map[[16]byte]int32{}}
	if _, err := x.add(-1, "", nil); err != nil {
		return x.fail(0, "", err), nil
	}
	for at := int32(0); int(at) < len(x.states); at++ {
		if len(x.states) > e.Most {
			return Found{States: len(x.states), Edges: x.edges}, fmt.Errorf("explore %s: more than %d states", e.Name, e.Most)
		}
		path := x.path(at)
		for _, action := range x.actions(path) {
			to, err := x.add(at, action, path)
			if err != nil {
				return x.fail(at, action, err), nil
			}
			x.edges++
			fair := action == "step quiet" || strings.HasPrefix(action, "load-done")
			x.states[at].next = append(x.states[at].next, edge{to, fair})
		}
	}
	if at := x.livelock(); at >= 0 {
		return x.fail(at, "", errors.New("from here the machine works for ever and nobody gets on")), nil
	}
	return Found{States: len(x.states), Edges: x.edges}, nil
}

// fail returns the play that leads to a fault.
func (x *explorer) fail(at int32, action string, err error) Found {
	play := append([]string{"pool " + x.e.Pool}, prefixed("external ", x.e.External)...)
	play = append(play, x.path(at)...)
	if action != "" {
		play = append(play, action)
	}
	return Found{States: len(x.states), Edges: x.edges, Play: play, Fault: err.Error()}
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

// perform plays the actions from the start.
func (x *explorer) perform(path []string) (p *play, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	p = &play{fault: x.e.Fault}
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
	for _, line := range path {
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

// add performs path and action, and enters the state they lead to if it is new.
func (x *explorer) add(parent int32, action string, path []string) (int32, error) {
	if action != "" {
		path = append(slices.Clip(path), action)
	}
	p, err := x.perform(path)
	if err != nil {
		return 0, err
	}
	n := node{parent: parent, action: action, done: true, loads: p.loading()}
	for _, r := range p.specs {
		n.known += len(r.text)
		if r.end != nil {
			n.known++
		}
		n.done = n.done && r.end != nil
	}
	n.done = n.done && len(n.loads) == 0
	key := x.fingerprint(p, path)
	at, ok := x.index[key]
	if !ok {
		at = int32(len(x.states))
		x.index[key] = at
		x.states = append(x.states, n)
	}
	return at, nil
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
		f = fmt.Append(f, flight.outputs)
	}
	f = fmt.Append(f, p.loading(), count(path, "abort"), count(path, "reset"), count(path, "load-fail"))
	sum := sha256.Sum256(f)
	return [16]byte(sum[:16])
}

// actions returns what may happen after path.
func (x *explorer) actions(path []string) []string {
	p, err := x.perform(path)
	if err != nil {
		return nil
	}
	actions := []string{"step quiet"}
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

func count(path []string, verb string) int {
	n := 0
	for _, line := range path {
		if strings.HasPrefix(line, verb) {
			n++
		}
	}
	return n
}

// livelock returns a state on a cycle of fair actions on which nothing is known afterwards that was not known before, in
// which no load stays in flight all the time (it would end), and which is not simply the end; −1 if there is none.
func (x *explorer) livelock() int32 {
	for _, component := range x.components() {
		first := &x.states[component[0]]
		if first.done || !x.cyclic(component) {
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

// cyclic tells whether the component holds a cycle: more than one state, or a fair edge to itself.
func (x *explorer) cyclic(component []int32) bool {
	if len(component) > 1 {
		return true
	}
	at := component[0]
	return slices.ContainsFunc(x.states[at].next, func(e edge) bool { return e.fair && e.to == at })
}
