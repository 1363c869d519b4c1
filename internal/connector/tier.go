package connector

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/kv"
)

// Workers of a store. Several readers keep a disk or a connection busy; each has one buffer, which bounds what is in flight.
const (
	readers = 4
	writers = 2
)

// cause is why a transfer failed.
type cause uint8

const (
	causeMissing  cause = iota // the store no longer has the chunk
	causeCorrupt               // the chunk is not what it should be
	causeRead                  // an error of the store
	causeWrite                 // an error of the store
	causeDeadline              // the load's time was up
	causeFind                  // the store did not say what it has
	causes
)

func (c cause) String() string {
	return [causes]string{"missing", "corrupt", "read", "write", "deadline", "find"}[c]
}

var errDeadline = errors.New("load ended at its deadline")

// tier is a store with its workers, buffers and counters.
type tier struct {
	store  Store
	format chunk.Format // of a chunk
	block  int          // bytes of a block
	memory Memory
	nearer []*tier // stores before this one
	log    *slog.Logger

	buffers []byte // all of them, outside the Go heap
	scratch [][]byte
	free    chan []byte // for chunks on their way out; empty means drop
	reads   *queue[readJob]
	writes  *queue[writeJob]
	finds   *queue[findJob] // unused unless the store is a Finder
	breaker breaker

	hits, stored counter
	missed       atomic.Uint64 // blocks it was asked for and does not hold
	reading      rate          // per chunk

	mu       sync.Mutex       // guards what follows
	pending  map[kv.Hash]bool // chunks on their way out
	dropped  uint64           // chunks not stored because no buffer was free
	refused  uint64           // chunks not stored because the breaker was open
	failures [causes]uint64
}

// writeJob is a chunk on its way out.
type writeJob struct {
	hash   kv.Hash
	buffer []byte
}

func newTier(s Store, cfg Config) (*tier, error) {
	t := &tier{
		store: s, format: cfg.Format.Of(s.ChunkBlocks()), block: cfg.Format.BlockBytes, memory: cfg.Memory,
		log:   cfg.Log.With(slog.String("tier", s.Name())),
		reads: newQueue[readJob](), writes: newQueue[writeJob](), finds: newQueue[findJob](), pending: map[kv.Hash]bool{},
	}
	size := t.format.BufferBytes()
	n := max(cfg.BufferBytes/size, 2*writers)
	memory, err := cpu.Alloc((n + readers) * size)
	if err != nil {
		return nil, err
	}
	t.buffers = memory
	t.free = make(chan []byte, n)
	for i := range n + readers {
		b := memory[i*size:][:size:size]
		if i < n {
			t.free <- b
		} else {
			t.scratch = append(t.scratch, b)
		}
	}
	return t, nil
}

func (t *tier) start(ctx context.Context, workers *sync.WaitGroup) {
	if f, ok := t.store.(Finder); ok {
		workers.Go(func() { t.findAll(ctx, f) })
	}
	for _, buffer := range t.scratch {
		workers.Go(func() { t.readAll(ctx, buffer) })
	}
	for range writers {
		workers.Go(func() { t.writeAll(ctx) })
	}
}

// close ends the store. The workers have ended.
func (t *tier) close() error {
	return errors.Join(t.store.Close(), cpu.Free(t.buffers))
}

// has tells whether a chunk can be read now.
func (t *tier) has(h *kv.Hash) bool { return t.store.Has(h) && t.breaker.allows(time.Now()) }

// readCost is the time a chunk takes away from the others, in seconds.
func (t *tier) readCost() float64 { return t.reading.perUnit() / readers }

// offer copies a chunk and has it stored, unless it is stored already. It never waits. block gives the chunk's i-th block.
func (t *tier) offer(h *kv.Hash, block func(i int) []byte) {
	if t.store.Has(h) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[*h] {
		return
	}
	if !t.breaker.allows(time.Now()) {
		t.refused++
		return
	}
	var buffer []byte
	select {
	case buffer = <-t.free:
	default:
		t.dropped++
		return
	}
	payload := t.format.Payload(buffer)
	for i := range t.format.Blocks {
		copy(payload[i*t.block:], block(i))
	}
	t.pending[*h] = true
	t.writes.put(writeJob{*h, buffer})
}

func (t *tier) writeAll(ctx context.Context) {
	for {
		job, ok := t.writes.take()
		if !ok {
			return
		}
		if ctx.Err() == nil {
			t.write(ctx, job)
		}
		t.mu.Lock()
		delete(t.pending, job.hash)
		t.mu.Unlock()
		t.free <- job.buffer
	}
}

func (t *tier) write(ctx context.Context, job writeJob) {
	if !t.breaker.allows(time.Now()) {
		t.mu.Lock()
		t.refused++
		t.mu.Unlock()
		return
	}
	t.format.Seal(job.buffer, &job.hash)
	start := time.Now()
	if err := t.store.Write(ctx, &job.hash, job.buffer); err != nil {
		if ctx.Err() == nil {
			t.failed(causeWrite, err)
		}
		return
	}
	t.breaker.worked()
	t.stored.add(t.format.Blocks, t.format.PayloadBytes(), time.Since(start))
}

func (t *tier) readAll(ctx context.Context, buffer []byte) {
	for {
		job, ok := t.reads.take()
		if !ok {
			return
		}
		if job.load.wants(job.part) {
			t.read(ctx, job, buffer)
		}
	}
}

// read brings one part of a load, or ends the load where it stands.
func (t *tier) read(ctx context.Context, job readJob, buffer []byte) {
	p := &job.load.parts[job.part]
	start := time.Now()
	err := t.store.Read(ctx, &p.hash, buffer)
	corrupt := error(nil)
	if err == nil {
		corrupt = t.format.Check(buffer, &p.hash)
	}
	took := time.Since(start)
	switch {
	case errors.Is(err, chunk.ErrMissing):
		t.count(causeMissing)
	case err != nil && ctx.Err() != nil: // closing
	case err != nil:
		t.store.Drop(&p.hash)
		t.failed(causeRead, err)
	case corrupt != nil:
		t.store.Drop(&p.hash)
		t.failed(causeCorrupt, corrupt)
	default:
		t.breaker.worked()
		t.reading.add(1, took)
		if job.load.fill(job.part, t.format.Payload(buffer), t.memory, t.block) {
			t.hits.add(p.to-p.from, (p.to-p.from)*t.block, took)
			t.promote(job.load, p, t.format.Payload(buffer))
		}
		return
	}
	job.load.miss(job.part)
}

// promote offers what was read to the nearer stores. (The ram tier gets it when the pool gives it up.)
func (t *tier) promote(l *load, p *part, payload []byte) {
	for _, nearer := range t.nearer {
		if nearer.store.ChunkBlocks() != 1 {
			continue
		}
		for b := p.from; b < p.to; b++ {
			at := (p.skip + b - p.from) * t.block
			k := key(&l.hashes[b-l.first], p.group)
			nearer.offer(&k, func(int) []byte { return payload[at : at+t.block] })
		}
	}
}

func (t *tier) count(c cause) {
	t.mu.Lock()
	t.failures[c]++
	t.mu.Unlock()
}

// failed counts a failure and tells the breaker.
func (t *tier) failed(c cause, err error) {
	t.count(c)
	if opened, pause := t.breaker.failed(time.Now()); opened {
		t.log.Warn("tier is set aside after failures in a row",
			slog.Duration("for", pause), slog.String("cause", c.String()), slog.Any("error", err))
	} else {
		t.log.Debug("transfer failed", slog.String("cause", c.String()), slog.Any("error", err))
	}
}
