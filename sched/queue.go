package sched

import (
	"slices"

	"github.com/quire-ai/quire/internal/invariant"
)

// queue holds waiting requests in the order of the policy: arrival (a list, which a preempted request rejoins at the
// front), or urgency (a heap). A request is in at most one queue and knows which, so that removing it needs no search.
type queue struct {
	byPriority  bool
	first, last *request   // list
	heap        []*request // by before
	n           int
}

// len returns the number of requests in q.
func (q *queue) len() int { return q.n }

// head returns the request to consider first, nil if there is none.
func (q *queue) head() *request {
	if !q.byPriority {
		return q.first
	}
	if q.n == 0 {
		return nil
	}
	return q.heap[0]
}

// pushBack adds r behind all others; under priority, where its key says.
func (q *queue) pushBack(r *request) {
	q.enter(r)
	if q.byPriority {
		q.heapPush(r)
		return
	}
	r.qprev, r.qnext = q.last, nil
	if q.last != nil {
		q.last.qnext = r
	} else {
		q.first = r
	}
	q.last = r
}

// pushFront adds r before all others; under priority, where its key says: a preempted request gets no boost.
func (q *queue) pushFront(r *request) {
	q.enter(r)
	if q.byPriority {
		q.heapPush(r)
		return
	}
	r.qprev, r.qnext = nil, q.first
	if q.first != nil {
		q.first.qprev = r
	} else {
		q.last = r
	}
	q.first = r
}

func (q *queue) enter(r *request) {
	if r.queue != nil {
		invariant.Broken("invariant 4: request %s enters a queue while it is in another", r.ID)
	}
	r.queue = q
	q.n++
}

// remove takes r out, wherever it stands.
func (q *queue) remove(r *request) {
	if r.queue != q {
		invariant.Broken("invariant 4: request %s is not in the queue it is removed from", r.ID)
	}
	r.queue = nil
	q.n--
	if q.byPriority {
		q.heapRemove(r.heapIndex)
		return
	}
	if r.qprev != nil {
		r.qprev.qnext = r.qnext
	} else {
		q.first = r.qnext
	}
	if r.qnext != nil {
		r.qnext.qprev = r.qprev
	} else {
		q.last = r.qprev
	}
	r.qprev, r.qnext = nil, nil
}

// all yields the requests: in order for a list, in heap order under priority.
func (q *queue) all(yield func(*request) bool) {
	if q.byPriority {
		for _, r := range q.heap {
			if !yield(r) {
				return
			}
		}
		return
	}
	for r := q.first; r != nil; {
		next := r.qnext
		if !yield(r) {
			return
		}
		r = next
	}
}

// ordered yields the requests in the order in which they will be considered.
func (q *queue) ordered(yield func(*request) bool) {
	if !q.byPriority {
		q.all(yield)
		return
	}
	sorted := append([]*request(nil), q.heap...)
	slices.SortFunc(sorted, func(a, b *request) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	for _, r := range sorted {
		if !yield(r) {
			return
		}
	}
}

// ids is ordered for ids.
func (q *queue) ids(yield func(RequestID) bool) {
	for r := range q.ordered {
		if !yield(r.ID) {
			return
		}
	}
}

func (q *queue) heapPush(r *request) {
	r.heapIndex = len(q.heap)
	q.heap = append(q.heap, r)
	q.up(r.heapIndex)
}

func (q *queue) heapRemove(i int) {
	last := len(q.heap) - 1
	q.swap(i, last)
	q.heap[last] = nil
	q.heap = q.heap[:last]
	if i < last {
		q.down(i)
		q.up(i)
	}
}

func (q *queue) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.heap[i].before(q.heap[parent]) {
			return
		}
		q.swap(i, parent)
		i = parent
	}
}

func (q *queue) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.heap) {
			return
		}
		if child+1 < len(q.heap) && q.heap[child+1].before(q.heap[child]) {
			child++
		}
		if !q.heap[child].before(q.heap[i]) {
			return
		}
		q.swap(i, child)
		i = child
	}
}

func (q *queue) swap(i, j int) {
	q.heap[i], q.heap[j] = q.heap[j], q.heap[i]
	q.heap[i].heapIndex, q.heap[j].heapIndex = i, j
}
