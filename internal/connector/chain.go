package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/connector/ram"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// Memory is the pool's memory.
type Memory interface {
	// Block is the memory of one block.
	Block(id int32) []byte
}

// Store keeps chunks of blocks by the hash of their last block. What it returns is checked by the chain. Its methods may be
// called concurrently; Has and Usage must return at once.
type Store interface {
	// Name is what metrics and logs call it: one word.
	Name() string
	// ChunkBlocks is the number of blocks in a chunk.
	ChunkBlocks() int
	// Has tells, from memory, whether the chunk can probably be read.
	Has(h *kv.Hash) bool
	// Read fills the buffer with a chunk. An error that is chunk.ErrMissing says that the store does not have it.
	Read(ctx context.Context, h *kv.Hash, buffer []byte) error
	// Write keeps a chunk, in place of others if need be.
	Write(ctx context.Context, h *kv.Hash, buffer []byte) error
	// Drop forgets a chunk that turned out bad.
	Drop(h *kv.Hash)
	Usage() Usage
	// Close ends the store. Nothing is called after it.
	Close() error
}

// Finder is a Store that others write to as well: what it has must be asked for. Has answers from memory what Find found.
type Finder interface {
	// Find asks which of the chunks are there, in bounded time.
	Find(ctx context.Context, hashes []kv.Hash) error
}

// Usage is what a tier holds at the moment.
type Usage struct {
	Blocks          int
	Bytes, Capacity int64  // Capacity is 0 if someone else decides
	Evicted         uint64 // chunks or blocks that made room for others
}

// Config is the shape of a chain. It is read once, by New.
type Config struct {
	Memory    Memory
	Format    chunk.Format // of one block
	RAM       *ram.Cache   // nil for none
	Stores    []Store      // nearest first
	BlockSize int          // tokens
	Events    bool         // keep what the ram tier gains and loses for AppendEvents
	Groups    []kv.Group   // those of the scheduler; empty means one that keeps the whole context
	// BufferBytes is the memory for chunks on their way to each store; 0 means 64 MiB.
	BufferBytes int
	// Log may be nil.
	Log *slog.Logger
}

const defaultBufferBytes = 64 << 20

// Chain is the tiers of one engine. Match, Finished, Begin, Filled, Done and Computed belong to the engine's loop; Stats may
// be called by any goroutine. Close ends it and what it was made of.
type Chain struct {
	cfg   Config
	ram   *ram.Cache
	tiers []*tier
	wake  func()

	copies  *queue[readJob] // of the ram tier
	workers sync.WaitGroup
	cancel  context.CancelFunc
	prefill rate // per token
	copying rate // per block of the ram tier
	hits    counter
	missed  atomic.Uint64 // blocks that the ram tier was asked for and does not hold

	// What Match answered since the last Begin: two requests of one pass with one prompt read it once.
	offered  map[kv.Hash]sched.RequestID // by the first block to load
	deferred bool                        // somebody was told to wait for one of these
	counted  map[sched.RequestID]bool    // live requests whose misses are counted
	scratch  []part
	needs    []span

	mu      sync.Mutex // guards what follows
	loads   map[loadKey]*load
	loading map[kv.Hash]int            // loads in flight by their first block
	asked   map[sched.RequestID]asking // live requests for which stores were asked what they have
	short   map[sched.RequestID]bool   // live requests of which a load did not bring all
	done    []sched.LoadDone
	expired uint64
}

// New returns a chain over the tiers, which it owns from now on, also if it fails.
func New(cfg Config) (*Chain, error) {
	if cfg.BufferBytes == 0 {
		cfg.BufferBytes = defaultBufferBytes
	}
	if len(cfg.Groups) == 0 {
		cfg.Groups = []kv.Group{{}}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Chain{
		cfg: cfg, ram: cfg.RAM, copies: newQueue[readJob](), wake: func() {},
		loads: map[loadKey]*load{}, loading: map[kv.Hash]int{}, offered: map[kv.Hash]sched.RequestID{}, short: map[sched.RequestID]bool{},
		asked: map[sched.RequestID]asking{}, counted: map[sched.RequestID]bool{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	for i, s := range cfg.Stores {
		t, err := newTier(s, cfg)
		if err != nil {
			err = errors.Join(err, c.Close())
			for _, s := range cfg.Stores[i:] {
				err = errors.Join(err, s.Close())
			}
			return nil, fmt.Errorf("%s tier: %w", s.Name(), err)
		}
		t.nearer = slices.Clone(c.tiers)
		c.tiers = append(c.tiers, t)
		t.start(ctx, &c.workers)
	}
	if c.ram != nil {
		if cfg.Events {
			c.ram.RecordEvents()
		}
		c.workers.Go(c.copy)
	}
	return c, nil
}

// Start is called once, before all else: wake is to be called whenever Done has something.
func (c *Chain) Start(wake func()) { c.wake = wake }

// Match implements sched.Connector: what the tiers hold behind the local hit, all but the block of the last token, which is
// computed in any case. What is in memory is copied with the next step, so that its request need not wait and nobody
// overtakes it; anything else is read in the background. If another request is reading the same blocks, it is worth waiting
// for it.
func (c *Chain) Match(q sched.MatchQuery) sched.Match {
	first := q.Local / c.cfg.BlockSize
	last := min((len(q.Tokens)-1)/c.cfg.BlockSize, len(q.Hashes))
	if q.Request.SkipCache || q.Request.LoRA != "" || first >= last {
		return sched.Match{}
	}
	c.mu.Lock()
	short, loading := c.short[q.Request.ID], c.loading[q.Hashes[first]] > 0
	c.mu.Unlock()
	if short {
		return sched.Match{} // it is computed, whatever the tiers say now
	}
	if loading {
		return sched.Match{Deferred: true}
	}
	if id, ok := c.offered[q.Hashes[first]]; ok && id != q.Request.ID {
		c.deferred = true
		return sched.Match{Deferred: true}
	}
	reach := c.reach(q.Hashes, first, last)
	if c.ask(q.Request.ID, q.Hashes, first, reach, last) {
		return sched.Match{Deferred: true}
	}
	c.needs = c.spans(c.needs[:0], first, reach)
	c.scratch = c.route(c.scratch[:0], q.Hashes, c.needs)
	c.countMissed(q.Request.ID, c.scratch, reach, last)
	n := c.worthwhile(c.scratch, reach-first)
	async := n > 0 && slices.ContainsFunc(c.scratch, func(p part) bool { return p.tier != nil && p.from < first+n })
	if async {
		c.offered[q.Hashes[first]] = q.Request.ID
	}
	return sched.Match{Tokens: n * c.cfg.BlockSize, Async: async}
}

// Finished implements sched.Connector. It ends the request's load; no block is kept, since stores have their own copies.
func (c *Chain) Finished(id sched.RequestID, epoch sched.Epoch, _ sched.Reason) bool {
	c.mu.Lock()
	l := c.loads[loadKey{id, epoch - 1}] // ending raised the epoch
	c.mu.Unlock()
	if l != nil {
		l.cancel()
	}
	delete(c.counted, id)
	c.mu.Lock()
	delete(c.asked, id)
	delete(c.short, id) // last: a load that is cut off is short
	c.mu.Unlock()
	return false
}

// Begin begins the transfers of a plan, each plan, before it is executed: sources are pinned, then what the plan evicts is
// copied out, then the loads write into the blocks.
func (c *Chain) Begin(p *sched.Plan) {
	if c.deferred && len(p.Loads) == 0 {
		c.wake() // who was to wait for a load that did not begin must be asked again
	}
	c.deferred = false
	clear(c.offered)
	var begun []*load
	var atOnce []copied
	for i := range p.Loads {
		if p.Loads[i].Async {
			begun = append(begun, c.open(&p.Loads[i]))
		} else {
			atOnce = append(atOnce, c.pin(&p.Loads[i]))
		}
	}
	for i := range p.Evicted {
		e := &p.Evicted[i]
		content := c.cfg.Memory.Block(int32(e.Block))
		if c.ram != nil {
			c.ram.Put(&e.Hash, e.Group, content)
		}
		k := key(&e.Hash, e.Group)
		for _, t := range c.tiers {
			if t.store.ChunkBlocks() == 1 { // a second chance, if it did not get through when it was filled
				t.offer(&k, func(int) []byte { return content })
			}
		}
	}
	for i := range atOnce {
		c.bring(&atOnce[i])
	}
	for _, l := range begun {
		l.start(c.expire)
		for i := range l.parts {
			c.read(l, i)
		}
	}
}

// open makes a load and pins its sources.
func (c *Chain) open(ld *sched.Load) *load {
	bs := c.cfg.BlockSize
	first, last := ld.From/bs, (ld.From+ld.Tokens)/bs
	spans, blocks := c.promised(ld)
	l := &load{
		key: loadKey{ld.ID, ld.Epoch}, first: first, hashes: slices.Clone(ld.Hashes[first:last]), promised: blocks,
		limit: c.deadline(ld.Tokens), ended: c.end,
	}
	l.parts = c.route(nil, ld.Hashes, spans)
	l.end = len(l.parts)
	for i := range l.parts {
		p := &l.parts[i]
		if p.tier != nil {
			continue
		}
		var ok bool
		if p.slot, p.bytes, ok = c.ram.Pin(&p.hash, p.group); !ok {
			l.end = i
			l.parts = l.parts[:i]
			break
		}
	}
	c.mu.Lock()
	c.loads[l.key] = l
	c.loading[l.hashes[0]]++
	c.mu.Unlock()
	return l
}

// promised returns what a load has to bring: in each group the blocks that are not null, group by group.
func (c *Chain) promised(ld *sched.Load) (spans []span, blocks []kv.BlockID) {
	bs := c.cfg.BlockSize
	last := (ld.From + ld.Tokens) / bs
	for g, table := range ld.Tables {
		from := ld.From / bs
		for from < last && table[from] == kv.Null {
			from++
		}
		spans = append(spans, span{g, from, last})
		blocks = append(blocks, table[from:last]...)
	}
	return spans, blocks
}

// Deadlines of loads: the time in which the tokens would be computed, within bounds.
const (
	minDeadline = 250 * time.Millisecond
	maxDeadline = 10 * time.Second
)

func (c *Chain) deadline(tokens int) time.Duration {
	d := time.Duration(c.prefill.perUnit() * float64(tokens) * float64(time.Second))
	if d == 0 {
		return maxDeadline
	}
	return min(max(d, minDeadline), maxDeadline)
}

// read puts part i of a load into its tier's queue.
func (c *Chain) read(l *load, i int) {
	q := c.copies
	if t := l.parts[i].tier; t != nil {
		q = t.reads
	}
	q.put(readJob{l, i})
}

// readJob is one part of a load.
type readJob struct {
	load *load
	part int
}

// copy serves the ram tier's parts.
func (c *Chain) copy() {
	for {
		job, ok := c.copies.take()
		if !ok {
			return
		}
		p := &job.load.parts[job.part]
		start := time.Now()
		if job.load.fill(job.part, p.bytes, c.cfg.Memory, c.cfg.Format.BlockBytes) {
			c.copying.add(1, time.Since(start))
			c.hits.add(1, c.cfg.Format.BlockBytes, time.Since(start))
		}
		c.ram.Unpin(p.slot)
	}
}

// expire counts a load that did not make its deadline, with the tier it waited for.
func (c *Chain) expire(p *part) {
	if p.tier != nil {
		p.tier.failed(causeDeadline, errDeadline)
	}
	c.mu.Lock()
	c.expired++
	c.mu.Unlock()
}

// end takes note of a load that has ended. It is called with the load's lock held, from any goroutine.
func (c *Chain) end(l *load) {
	bad := l.bad()
	c.mu.Lock()
	delete(c.loads, l.key)
	if c.loading[l.hashes[0]]--; c.loading[l.hashes[0]] == 0 {
		delete(c.loading, l.hashes[0])
	}
	if len(bad) > 0 {
		c.short[l.key.id] = true
	}
	c.done = append(c.done, sched.LoadDone{ID: l.key.id, Epoch: l.key.epoch, Bad: bad})
	c.mu.Unlock()
	c.wake()
}

// Done appends the loads that have ended since it was called last.
func (c *Chain) Done(dst []sched.LoadDone) []sched.LoadDone {
	c.mu.Lock()
	defer c.mu.Unlock()
	dst = append(dst, c.done...)
	clear(c.done)
	c.done = c.done[:0]
	return dst
}

// AppendEvents appends what the ram tier gained and lost since it was called last. Stores tell nothing: what others may remove
// without a word cannot be vouched for (docs/decisions/0111-shared-store-not-announced.md).
func (c *Chain) AppendEvents(dst []kv.Event) []kv.Event {
	if c.ram == nil {
		return dst
	}
	return c.ram.AppendEvents(dst)
}

// Filled offers what a step completed to the stores.
func (c *Chain) Filled(filled []sched.Filled) {
	for i := range filled {
		f := &filled[i]
		for g, table := range f.Tables {
			for _, t := range c.tiers {
				n := t.store.ChunkBlocks()
				for end := (f.From/n + 1) * n; end <= f.To; end += n {
					blocks := table[end-n : end]
					if slices.Contains(blocks, kv.Null) {
						continue // partly left of the window
					}
					k := key(&f.Hashes[end-1], g)
					t.offer(&k, func(i int) []byte { return c.cfg.Memory.Block(int32(blocks[i])) })
				}
			}
		}
	}
}

// manyTokens is the size of a step from which on its time says how fast prompts are computed.
const manyTokens = 96

// Computed tells how long a step took: what a load is worth is measured by it.
func (c *Chain) Computed(tokens int, d time.Duration) {
	if tokens >= manyTokens {
		c.prefill.add(tokens, d)
	}
}

// How long Close lets stores write what is on its way, and then how long it waits for one that does not return.
const (
	flushTimeout = 2 * time.Second
	closeTimeout = 5 * time.Second
)

// Close ends all loads, lets the stores write what is on its way, within bounds, and closes the tiers. From its beginning on
// nobody writes to the pool's memory, even if a store is stuck.
func (c *Chain) Close() error {
	c.mu.Lock()
	var open []*load
	for _, l := range c.loads {
		open = append(open, l)
	}
	c.mu.Unlock()
	for _, l := range open {
		l.cancel()
	}
	c.copies.close()
	for _, t := range c.tiers {
		t.reads.close()
		t.finds.close()
		t.writes.close()
	}
	ended := make(chan struct{})
	go func() { c.workers.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(flushTimeout):
	}
	c.cancel()
	select {
	case <-ended:
	case <-time.After(closeTimeout):
		return fmt.Errorf("close tiers: a store has not returned within %v", closeTimeout)
	}
	var errs []error
	for _, t := range c.tiers {
		errs = append(errs, t.close())
	}
	if c.ram != nil {
		errs = append(errs, c.ram.Close())
	}
	return errors.Join(errs...)
}
