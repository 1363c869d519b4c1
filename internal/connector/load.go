package connector

import (
	"sync"
	"time"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// loadKey names a load: a request has at most one in each of its lives.
type loadKey struct {
	id    sched.RequestID
	epoch sched.Epoch
}

// load brings blocks into the pool for one request. It ends once: when all its parts are there, at the first gap once all
// before the gap is there, at its deadline, or when the request ends. From then on its blocks are not written any more.
type load struct {
	key      loadKey
	first    int           // block of the request
	hashes   []kv.Hash     // of the blocks from first on
	promised []kv.BlockID  // the blocks the scheduler counts on, in the order of the parts
	limit    time.Duration // from its beginning to its deadline
	ended    func(*load)   // called once, with mu held

	mu     sync.Mutex // guards what follows, and the blocks of the pool
	parts  []part     // cover promised from its first block on
	next   int        // first part that is not there yet
	end    int        // parts from here on will not come
	closed bool
	timer  *time.Timer
}

// start sets the deadline running; a load of nothing ends at once.
func (l *load) start(expired func(*part)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == 0 {
		l.close()
		return
	}
	l.timer = time.AfterFunc(l.limit, func() { l.expire(expired) })
}

// wants tells whether part i is still of use.
func (l *load) wants(i int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && i < l.end
}

// fill copies part i into the pool, unless the load has ended or has a gap before it. It tells whether it did.
func (l *load) fill(i int, payload []byte, memory Memory, blockBytes int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || i >= l.end {
		return false
	}
	p := &l.parts[i]
	for b := p.from; b < p.to; b++ {
		at := (p.skip + b - p.from) * blockBytes
		copy(memory.Block(int32(l.promised[p.at+b-p.from])), payload[at:at+blockBytes])
	}
	p.ok = true
	l.settle()
	return true
}

// miss notes that part i will not come: nor will what lies behind it.
func (l *load) miss(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && i < l.end {
		l.end = i
		l.settle()
	}
}

func (l *load) settle() {
	for l.next < l.end && l.parts[l.next].ok {
		l.next++
	}
	if l.next == l.end {
		l.close()
	}
}

// expire ends the load at its deadline and reports the part it waited for.
func (l *load) expire(expired func(*part)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	expired(&l.parts[l.next])
	l.end = l.next
	l.close()
}

// cancel ends the load because its request ended.
func (l *load) cancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.end = l.next
		l.close()
	}
}

func (l *load) close() {
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.ended(l)
}

// bad returns the promised blocks that did not come. Called with mu held, after the end.
func (l *load) bad() []kv.BlockID {
	if l.end == 0 {
		return l.promised
	}
	last := &l.parts[l.end-1]
	return l.promised[last.at+last.to-last.from:]
}
