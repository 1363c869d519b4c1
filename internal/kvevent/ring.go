package kvevent

import (
	"sync"
	"time"
)

// numbered is a batch with its number.
type numbered struct {
	number  uint64
	payload []byte // nobody changes it
}

// ring holds the newest batches. Numbers begin at 0 and have no gap.
type ring struct {
	mu      sync.Mutex // guards what follows, and the cursors
	changed sync.Cond  // something was appended, or somebody must look why not
	batches [][]byte   // batch n is at n mod capacity
	first   uint64     // the oldest that is held
	next    uint64     // the number of the next
	began   time.Time  // when the first was appended
	closed  bool
	cursors map[*cursor]bool
	dropped uint64 // batches that cursors passed over
}

func newRing(capacity int) *ring {
	r := &ring{batches: make([][]byte, capacity), cursors: map[*cursor]bool{}}
	r.changed.L = &r.mu
	return r
}

// append adds a batch, in place of the oldest if the ring is full.
func (r *ring) append(payload []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := uint64(len(r.batches))
	if r.next == 0 {
		r.began = time.Now()
	}
	if r.next-r.first == n {
		r.first++
	}
	r.batches[r.next%n] = payload
	r.next++
	r.changed.Broadcast()
}

// since returns the batches from a number on; false if the ring no longer has the first of them.
func (r *ring) since(number uint64) ([]numbered, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number < r.first {
		return nil, false
	}
	return r.slice(number, r.next), true
}

func (r *ring) slice(from, to uint64) []numbered {
	var list []numbered
	for n := from; n < to; n++ {
		list = append(list, numbered{n, r.batches[n%uint64(len(r.batches))]})
	}
	return list
}

// length returns the number of the next batch: how many there have been.
func (r *ring) length() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// close ends all cursors.
func (r *ring) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.changed.Broadcast()
}

// cursor is a reader's place in the ring.
type cursor struct {
	ring   *ring
	at     uint64 // the next batch to read
	most   uint64 // it may lag by so many
	behind bool   // it has passed over batches since it last had read all
	closed bool
}

// open returns a cursor that will read what is appended from now on or, if the ring is younger than grace, everything.
func (r *ring) open(most int, grace time.Duration) *cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &cursor{ring: r, at: r.next, most: uint64(min(most, len(r.batches)))}
	if time.Since(r.began) < grace {
		c.at = r.first
	}
	r.cursors[c] = true
	return c
}

// fewBatches is how many a cursor returns at once.
const fewBatches = 64

// read waits for batches and returns some. A cursor that lags too far goes on with the newest: one gap tells its reader as
// much as many. It returns false when the cursor or the ring is closed.
func (c *cursor) read() ([]numbered, bool) {
	r := c.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	for c.at == r.next && !c.closed && !r.closed {
		c.behind = false
		r.changed.Wait()
	}
	if c.closed || r.closed {
		return nil, false
	}
	if r.next-c.at > c.most {
		c.behind = true
		r.dropped += r.next - 1 - c.at
		c.at = r.next - 1
	}
	list := r.slice(c.at, min(r.next, c.at+fewBatches))
	c.at += uint64(len(list))
	return list, true
}

// close has read return.
func (c *cursor) close() {
	c.ring.mu.Lock()
	defer c.ring.mu.Unlock()
	c.closed = true
	delete(c.ring.cursors, c)
	c.ring.changed.Broadcast()
}

// readers counts the cursors that keep up and those that lost batches, and the batches lost so far.
func (r *ring) readers() (current, behind int, dropped uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.cursors {
		if c.lags() {
			behind++
		} else {
			current++
		}
	}
	return current, behind, r.dropped
}

// lags tells whether the cursor has lost batches, or will when it reads.
func (c *cursor) lags() bool { return c.behind || c.ring.next-c.at > c.most }
