package connector

import "sync"

// queue hands jobs to workers in order. What is put in is bounded by whoever puts it: loads by the pool's blocks, stores by
// their buffers.
type queue[T any] struct {
	mu     sync.Mutex
	cond   sync.Cond
	jobs   []T
	closed bool
}

func newQueue[T any]() *queue[T] {
	q := &queue[T]{}
	q.cond.L = &q.mu
	return q
}

func (q *queue[T]) put(job T) {
	q.mu.Lock()
	q.jobs = append(q.jobs, job)
	q.mu.Unlock()
	q.cond.Signal()
}

// take waits for a job; false means that the queue was closed and is empty.
func (q *queue[T]) take() (job T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 && !q.closed {
		q.cond.Wait()
	}
	if len(q.jobs) == 0 {
		return job, false
	}
	job = q.jobs[0]
	q.jobs = q.jobs[1:]
	return job, true
}

func (q *queue[T]) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.cond.Broadcast()
}
