package sched

import (
	"encoding/binary"

	"github.com/quire-ai/quire/kv"
)

// AppendFingerprint appends a description of everything in the state that future decisions depend on, such that states
// which differ only in the numbers of blocks, in hashes or in how often something happened before describe themselves
// alike. It serves exhaustive search: two states with one fingerprint have the same future.
func (s *Scheduler) AppendFingerprint(dst []byte) []byte {
	f := fingerprint{dst: dst, s: s, blocks: map[kv.BlockID]int{}, hashes: map[kv.Hash]int{}}
	f.num(int(s.pause), len(s.inFlight), len(s.finished), len(s.preempted), len(s.failedGrammar))
	for r := s.allFirst; r != nil; r = r.allNext {
		f.request(r)
	}
	for _, p := range s.inFlight {
		f.plan(p)
	}
	f.num(-1)
	for _, r := range s.running {
		f.num(int(r.seq))
	}
	f.queue(&s.deferred)
	f.queue(&s.waiting)
	for _, g := range s.fence.groups {
		f.num(int(g.until - s.fence.retired))
		f.table(g.blocks)
	}
	f.num(-2)
	f.table(s.cache.Pool().AppendFree(nil, s.cfg.Blocks))
	return f.dst
}

type fingerprint struct {
	dst    []byte
	s      *Scheduler
	blocks map[kv.BlockID]int // in order of appearance
	hashes map[kv.Hash]int
}

func (f *fingerprint) num(ns ...int) {
	for _, n := range ns {
		f.dst = binary.AppendVarint(f.dst, int64(n))
	}
}

func (f *fingerprint) flags(fs ...bool) {
	n := 0
	for i, b := range fs {
		if b {
			n |= 1 << i
		}
	}
	f.num(n)
}

func (f *fingerprint) request(r *request) {
	f.num(int(r.seq), int(r.state), r.computed, len(r.tokens), r.placeholders, r.inFlight, r.stale, r.discard, len(r.spec))
	f.num(int(r.load), min(r.loaded, 3), int(r.grammar), min(r.preemptions, 1), r.table.Registered(0))
	f.flags(r.prefillChunk, r.prefilling, r.sending, r.yielded, r.deferred)
	for g := range f.s.cache.Groups() {
		f.table(r.table.Blocks(g, 0))
	}
}

// plan describes a plan in flight: what its return will do.
func (f *fingerprint) plan(p *Plan) {
	f.num(len(p.Requests))
	for i := range p.Requests {
		item := &p.Requests[i]
		f.num(int(item.r.seq), item.From, item.N, len(item.Drafts), item.registered)
		f.flags(item.Sample, item.epoch == item.r.epoch, item.epoch < item.r.dropBefore, item.epoch >= item.r.resident)
	}
}

// table describes blocks by when they were seen first, and their hashes likewise.
func (f *fingerprint) table(blocks []kv.BlockID) {
	f.num(len(blocks))
	pool := f.s.cache.Pool()
	for _, b := range blocks {
		i, seen := f.blocks[b]
		if !seen {
			i = len(f.blocks)
			f.blocks[b] = i
		}
		f.num(i)
		if seen {
			continue
		}
		h, ok := pool.Hash(b)
		if !ok {
			f.num(-1)
			continue
		}
		j, known := f.hashes[h]
		if !known {
			j = len(f.hashes)
			f.hashes[h] = j
			f.dst = append(f.dst, h[:4]...) // which tokens it holds matters to who may hit it
		}
		f.num(j)
		f.flags(pool.Tainted(b))
		for _, p := range f.s.inFlight {
			f.flags(pool.RegisteredSince(b, p.Step))
		}
	}
}

func (f *fingerprint) queue(q *queue) {
	f.num(-3, q.n)
	for r := range q.ordered {
		f.num(int(r.seq))
	}
}
