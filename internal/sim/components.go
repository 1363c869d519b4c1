package sim

// components returns the strongly connected components of the states under edges that the machine itself takes: Tarjan's
// algorithm, with the recursion unrolled, since a path may be as long as there are states.
func (x *explorer) components() [][]int32 {
	n := len(x.states)
	t := tarjan{x: x, order: make([]int32, n), low: make([]int32, n), onStack: make([]bool, n)}
	for at := range x.states {
		if t.order[at] == 0 {
			t.visit(int32(at))
		}
	}
	return t.found
}

type tarjan struct {
	x       *explorer
	order   []int32 // of discovery, from 1; 0 is not discovered
	low     []int32
	onStack []bool
	stack   []int32
	calls   []call
	next    int32
	found   [][]int32
}

// call is a frame of the unrolled recursion.
type call struct {
	at   int32
	edge int // to be looked at next
}

func (t *tarjan) visit(root int32) {
	t.enter(root)
	for len(t.calls) > 0 {
		c := &t.calls[len(t.calls)-1]
		edges := t.x.states[c.at].next
		if c.edge < len(edges) {
			e := edges[c.edge]
			c.edge++
			switch {
			case e.kind == fromOutside:
			case t.order[e.to] == 0:
				t.enter(e.to)
			case t.onStack[e.to]:
				t.low[c.at] = min(t.low[c.at], t.order[e.to])
			}
			continue
		}
		at := c.at
		t.calls = t.calls[:len(t.calls)-1]
		if len(t.calls) > 0 {
			parent := t.calls[len(t.calls)-1].at
			t.low[parent] = min(t.low[parent], t.low[at])
		}
		if t.low[at] == t.order[at] {
			t.close(at)
		}
	}
}

func (t *tarjan) enter(at int32) {
	t.next++
	t.order[at], t.low[at] = t.next, t.next
	t.onStack[at] = true
	t.stack = append(t.stack, at)
	t.calls = append(t.calls, call{at: at})
}

// close takes a finished component off the stack.
func (t *tarjan) close(at int32) {
	var component []int32
	for {
		top := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.onStack[top] = false
		component = append(component, top)
		if top == at {
			break
		}
	}
	t.found = append(t.found, component)
}
