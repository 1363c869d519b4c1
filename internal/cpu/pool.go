package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// job is one piece of parallel work: run is called once for each chunk, by any worker, in any order.
type job interface {
	run(worker, chunk int)
}

// pool is a set of persistent workers, each locked to a thread. The caller of do is worker 0; the others are
// goroutines that spin for a moment after a job, then park. do takes chunks beside them, so that a worker which is late,
// because the system gave its core to somebody else, holds nobody up unless it has already taken a chunk.
//
// A job's chunks are shared out in runs, so that a worker goes through neighbouring ones, whose memory the processor
// fetches ahead of their use; who has done its own share takes chunks of the others.
//
// One goroutine at a time calls do.
type pool struct {
	shares []share       // of a job's chunks; worker w begins with share w mod len
	epoch  atomic.Uint64 // counts jobs; stored when a job's chunks can be claimed
	_      [56]byte
	done   atomic.Int64 // chunks of the current job that are finished
	_      [56]byte

	work job // of the current epoch; written only while no chunk can be claimed

	sleepers []sleeper // one a worker, [0] unused
	active   atomic.Int32
	stop     atomic.Bool
	wait     sync.WaitGroup

	crew  crew
	began time.Time // what the crew's times count from
	jobs  uint      // so far
}

// share is a run of a job's chunks.
type share struct {
	// ticket is epoch<<32 | next chunk. A worker claims a chunk by compare-and-swap, which fails if the job has changed
	// since the worker read it: see claim.
	ticket atomic.Uint64
	end    atomic.Int64 // of the run
	_      [48]byte
}

// mostShares bounds the time it takes to hand a job out; more workers than that have shares in common.
const mostShares = 8

// sleeper lets a worker park: it sets parked, looks once more for work, and waits for wake.
type sleeper struct {
	parked atomic.Bool
	wake   chan struct{} // capacity 1; a send follows each parked true → false by another goroutine
	_      [40]byte
}

const (
	closed   = 1<<32 - 1             // a chunk number no job has: nothing can be claimed
	spinTime = 60 * time.Microsecond // covers the serial gaps within a step
	spinPoll = 64                    // looks at the epoch between looks at the clock
	timedJob = 7                     // one job in so many is timed for the crew
)

// newPool starts threads-1 workers.
func newPool(threads int) *pool {
	threads = max(threads, 1)
	p := &pool{
		shares:   make([]share, min(threads, mostShares)),
		sleepers: make([]sleeper, threads), crew: newCrew(threads), began: time.Now(),
	}
	p.active.Store(int32(threads))
	for i := range p.shares {
		p.shares[i].ticket.Store(closed)
	}
	for w := 1; w < threads; w++ {
		p.sleepers[w].wake = make(chan struct{}, 1)
		p.wait.Add(1)
		go p.worker(w)
	}
	return p
}

// close ends the workers and waits for them. No do may be running or follow.
func (p *pool) close() {
	p.stop.Store(true)
	p.wakeAll(len(p.sleepers))
	p.wait.Wait()
}

// do runs all chunks of j and returns when they are finished.
func (p *pool) do(chunks int, j job) {
	if chunks <= 1 || len(p.sleepers) == 1 {
		for c := range chunks {
			j.run(0, c)
		}
		return
	}
	p.jobs++
	if p.jobs%timedJob != 0 {
		p.start(chunks, j)
		p.drain(0)
		p.finish(chunks)
		return
	}
	start := time.Since(p.began)
	p.start(chunks, j)
	mine := p.drain(0)
	alone := time.Since(p.began)
	p.finish(chunks)
	end := time.Since(p.began)
	p.crew.observe(end, jobTime{wall: end - start, waited: end - alone, mine: mine, all: chunks})
	p.active.Store(int32(p.crew.active))
}

// start hands a job to the workers. Between jobs a ticket's chunk number is at its share's end or closed, so a worker's
// claim fails; setting all to closed first makes a claim with an old number fail too, before work and ends change.
func (p *pool) start(chunks int, j job) {
	epoch := p.epoch.Load() + 1
	for i := range p.shares {
		p.shares[i].ticket.Store(epoch<<32 | closed)
	}
	p.work = j
	p.done.Store(0)
	active := int(p.active.Load())
	n := min(active, len(p.shares))
	for i := range n {
		p.shares[i].end.Store(int64((i + 1) * chunks / n))
		p.shares[i].ticket.Store(epoch<<32 | uint64(i*chunks/n))
	}
	p.epoch.Store(epoch)
	p.wakeAll(active)
}

// finish waits for the chunks that others have taken.
func (p *pool) finish(chunks int) {
	for spins := 0; p.done.Load() < int64(chunks); spins++ {
		if spins%1024 == 1023 {
			runtime.Gosched() // a worker lost its core while it held a chunk
		}
		pause()
	}
	p.work = nil
}

// drain takes chunks until there are none, and returns how many it took.
func (p *pool) drain(worker int) (taken int) {
	for i := range p.shares {
		s := &p.shares[(worker+i)%len(p.shares)]
		for {
			chunk, ok := s.claim()
			if !ok {
				break
			}
			p.work.run(worker, chunk)
			p.done.Add(1)
			taken++
		}
	}
	return taken
}

// claim takes a chunk of the share. What is read between the load and the swap belongs to the ticket's epoch if the
// swap succeeds, and so does the pool's work until the chunk is done: do does not return before, and so changes nothing.
func (s *share) claim() (chunk int, ok bool) {
	for {
		t := s.ticket.Load()
		next := t & closed
		if next == closed || int64(next) >= s.end.Load() {
			return 0, false
		}
		if s.ticket.CompareAndSwap(t, t+1) {
			return int(next), true
		}
	}
}

// worker is the life of workers 1 and up.
func (p *pool) worker(w int) {
	defer p.wait.Done()
	runtime.LockOSThread()
	s := &p.sleepers[w]
	for !p.stop.Load() {
		seen := p.epoch.Load()
		if w < int(p.active.Load()) {
			p.drain(w)
			if p.spin(seen) {
				continue
			}
		}
		s.parked.Store(true)
		if w < int(p.active.Load()) && p.epoch.Load() != seen || p.stop.Load() {
			if s.parked.CompareAndSwap(true, false) {
				continue
			}
		}
		<-s.wake
	}
}

// spin waits a moment for a job newer than seen.
func (p *pool) spin(seen uint64) bool {
	start := time.Now()
	for {
		for range spinPoll {
			if p.epoch.Load() != seen {
				return true
			}
			pause()
		}
		if time.Since(start) > spinTime || p.stop.Load() {
			return false
		}
	}
}

// wakeAll wakes those of the first n workers that are parked.
func (p *pool) wakeAll(n int) {
	for w := 1; w < n; w++ {
		if s := &p.sleepers[w]; s.parked.Load() && s.parked.CompareAndSwap(true, false) {
			s.wake <- struct{}{}
		}
	}
}
