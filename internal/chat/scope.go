package chat

import "slices"

// Variables live in slots of frames. Which names have a slot in which scope, and what a slot holds when its scope is
// entered, is decided before rendering and exactly as jinja2 decides it: a name stored anywhere in a scope has one
// slot there for the whole scope, which begins as a copy of the enclosing scope's slot, or else as the variable of
// that name given to the template, or else as undefined. This is visible: a name that is only ever stored in the
// outermost scope reads as undefined before it is stored, whatever the caller gave.

// slot is the index of a variable in its frame; -1 is none.
type slot int

// ref finds a variable: its slot in the frame that is up steps out.
type ref struct {
	up   int
	slot slot
	// export also publishes what is stored here under the name, for blocks: only in the outermost scope.
	export bool
}

// scope is the layout of the frames of one scope.
type scope struct {
	size  int
	loads []load
	unset []slot // those that are undefined until stored
}

// load says what a slot holds when the scope is entered.
type load struct {
	slot slot
	kind loadKind
	name string // loadResolve: the template's variable
	from ref    // loadAlias: the slot to copy, seen from the new frame
}

type loadKind uint8

const (
	loadNothing   loadKind = iota // undefined until stored
	loadParameter                 // filled by whoever enters the scope
	loadResolve
	loadAlias
)

// symbols collects the names of a scope. Branches of an if work on copies that are merged.
type symbols struct {
	parent *symbols
	slots  map[string]slot // of every name of the scope, shared by the copies
	refs   map[string]slot // names that are known so far
	loads  map[slot]load
	stores map[string]bool
	work   *int64 // names copied in the whole template, bounded by maxScopeWork
}

// maxScopeWork bounds the work of many branches that know many names. Published templates need a few thousand.
const maxScopeWork = 1_000_000

func newSymbols(parent *symbols, work *int64) *symbols {
	return &symbols{
		parent: parent,
		work:   work,
		slots:  map[string]slot{},
		refs:   map[string]slot{},
		loads:  map[slot]load{},
		stores: map[string]bool{},
	}
}

func (s *symbols) copy() *symbols {
	c := newSymbols(s.parent, s.work)
	c.slots = s.slots
	c.merge(s)
	return c
}

// merge adds what b knows to s. After too much work it does nothing: the template is refused then.
func (s *symbols) merge(b *symbols) {
	*s.work += int64(len(b.refs) + len(b.loads) + len(b.stores))
	if *s.work > maxScopeWork {
		return
	}
	for name, at := range b.refs {
		s.refs[name] = at
	}
	for at, l := range b.loads {
		s.loads[at] = l
	}
	for name := range b.stores {
		s.stores[name] = true
	}
}

// find is where name is kept, in this scope or an outer one.
func (s *symbols) find(name string) (ref, bool) {
	up := 0
	for sym := s; sym != nil; sym = sym.parent {
		if at, ok := sym.refs[name]; ok {
			return ref{up: up, slot: at}, true
		}
		up++
	}
	return ref{}, false
}

// outer is where the enclosing scopes keep name, seen from this one.
func (s *symbols) outer(name string) (ref, bool) {
	if s.parent == nil {
		return ref{}, false
	}
	r, ok := s.parent.find(name)
	r.up++
	return r, ok
}

func (s *symbols) define(name string, l load) slot {
	at, ok := s.slots[name]
	if !ok {
		at = slot(len(s.slots))
		s.slots[name] = at
	}
	l.slot = at
	s.refs[name] = at
	s.loads[at] = l
	return at
}

func (s *symbols) parameter(name string) slot {
	s.stores[name] = true
	return s.define(name, load{kind: loadParameter})
}

func (s *symbols) store(name string) {
	s.stores[name] = true
	if _, ok := s.refs[name]; ok {
		return
	}
	if from, ok := s.outer(name); ok {
		s.define(name, load{kind: loadAlias, from: from})
		return
	}
	s.define(name, load{kind: loadNothing})
}

func (s *symbols) load(name string) {
	if _, ok := s.find(name); !ok {
		s.define(name, load{kind: loadResolve, name: name})
	}
}

// mergeBranches adds the branches of an if. What only some of them store must have its outer value otherwise.
func (s *symbols) mergeBranches(branches []*symbols) {
	stored := map[string]bool{}
	for _, b := range branches {
		for name := range b.stores {
			if !s.stores[name] {
				stored[name] = true
			}
		}
	}
	for _, b := range branches {
		s.merge(b)
	}
	for name := range stored {
		at, ok := s.refs[name]
		if !ok {
			continue // the work was too much
		}
		if from, ok := s.outer(name); ok {
			s.loads[at] = load{slot: at, kind: loadAlias, from: from}
		} else {
			s.loads[at] = load{slot: at, kind: loadResolve, name: name}
		}
	}
}

// layout is the finished scope.
func (s *symbols) layout() *scope {
	sc := &scope{size: len(s.slots)}
	for _, l := range s.loads {
		switch l.kind {
		case loadResolve, loadAlias:
			sc.loads = append(sc.loads, l)
		case loadNothing:
			sc.unset = append(sc.unset, l.slot)
		}
	}
	slices.SortFunc(sc.loads, func(a, b load) int { return int(a.slot - b.slot) })
	return sc
}

// read notes the names that x reads.
func (s *symbols) read(x expr) {
	walkExpr(x, func(x expr) bool {
		if n, ok := x.(*nameExpr); ok {
			s.load(n.name)
		}
		return true
	})
}

// assign notes the names that target stores.
func (s *symbols) assign(target expr, parameter bool) {
	walkExpr(target, func(x expr) bool {
		switch x := x.(type) {
		case *nsRef:
			s.load(x.ns.name)
			return false
		case *nameExpr:
			if parameter {
				s.parameter(x.name)
			} else {
				s.store(x.name)
			}
		}
		return true
	})
}

func (s *symbols) body(body []stmt) {
	for _, st := range body {
		s.statement(st)
	}
}

// statement notes the names of st that belong to this scope: the bodies of most tags have scopes of their own.
func (s *symbols) statement(st stmt) {
	switch st := st.(type) {
	case *printStmt:
		s.read(st.x)
	case *setStmt:
		s.read(st.value)
		s.assign(st.target, false)
	case *setBlockStmt:
		s.assign(st.target, false)
	case *ifStmt:
		s.ifStatement(st)
	case *forStmt:
		s.read(st.iter)
	case *macroStmt:
		s.store(st.name)
	case *callBlockStmt:
		s.read(st.call)
	case *filterBlockStmt:
		s.read(st.filter)
	case *withStmt:
		for _, v := range st.values {
			s.read(v)
		}
	case *loadStmt:
		for _, n := range st.names {
			s.store(n.name)
		}
	}
}

func (s *symbols) ifStatement(st *ifStmt) {
	s.read(st.branches[0].test)
	first := s.copy()
	first.body(st.branches[0].body)
	rest := s.copy()
	for _, b := range st.branches[1:] {
		rest.ifStatement(&ifStmt{branches: []branch{b}})
	}
	other := s.copy()
	other.body(st.other)
	s.mergeBranches([]*symbols{first, rest, other})
}
