package kvevent

import (
	"slices"

	"github.com/quire-ai/quire/kv"
)

// media is the number of places where a block can lie.
const media = int(kv.InRAM) + 1

// name is how a block is called on the wire.
type name struct {
	hash  uint64
	group uint8
}

// block is one that the readers of the stream know.
type block struct {
	name
	parent    uint64
	hasParent bool
	tokens    []int32
	lora      string
	salt      string       // of the first block of a sequence
	copies    [media]int32 // blocks of memory that hold it; readers are told of the first and the last

	prev, next *block // in the order in which they became known
	visited    uint64 // number of the account that came by last
	reached    bool   // and whether its parent, if it has one, was in that account
}

func (b *block) gone() bool { return b.copies == [media]int32{} }

// view is what a reader knows who got every batch. It belongs to one caller.
type view struct {
	blocks         map[name]*block
	oldest, newest *block
	accounts       uint64 // snapshots made
	run, chain     []*block
}

func newView() *view { return &view{blocks: map[name]*block{}} }

// apply takes an event in, and appends to the batch what readers must be told.
func (v *view) apply(e *kv.Event, out *batch) {
	switch {
	case e.Kind == kv.AllBlocksCleared:
		v.clear(e.Medium)
		v.account(out)
		v.forgetUnreached()
	case e.Kind == kv.BlockRemoved:
		for i := range e.Hashes {
			v.remove(name{e.Hashes[i].Wire(), uint8(e.Group)}, e.Medium, out)
		}
	case e.Medium == kv.InPool:
		v.store(e, out)
	default:
		for i := range e.Hashes {
			v.copied(name{e.Hashes[i].Wire(), uint8(e.Group)}, e.Medium, out)
		}
	}
}

// store takes in blocks that the pool computed. Those that it held already end a run, since readers know them.
func (v *view) store(e *kv.Event, out *batch) {
	size := len(e.Tokens) / len(e.Hashes)
	run := v.run[:0]
	for i := range e.Hashes {
		n := name{e.Hashes[i].Wire(), uint8(e.Group)}
		b := v.blocks[n]
		if b == nil {
			b = &block{name: n, hasParent: e.HasParent || i > 0, tokens: slices.Clone(e.Tokens[i*size : (i+1)*size]), lora: e.LoRA}
			switch {
			case i > 0:
				b.parent = e.Hashes[i-1].Wire()
			case e.HasParent:
				b.parent = e.Parent.Wire()
			default:
				b.salt = e.Salt
			}
			v.add(b)
		}
		if b.copies[kv.InPool]++; b.copies[kv.InPool] == 1 {
			run = append(run, b)
		} else {
			out.stored(kv.InPool, run)
			run = run[:0]
		}
	}
	out.stored(kv.InPool, run)
	v.run = run
}

// copied takes in that a known block lies elsewhere too. One that is not known is one of which readers have forgotten.
func (v *view) copied(n name, m kv.Medium, out *batch) {
	b := v.blocks[n]
	if b == nil {
		return
	}
	if b.copies[m]++; b.copies[m] == 1 {
		out.stored(m, append(v.run[:0], b))
	}
}

// remove takes in that a block is gone from one place.
func (v *view) remove(n name, m kv.Medium, out *batch) {
	b := v.blocks[n]
	if b == nil || b.copies[m] == 0 {
		return
	}
	if b.copies[m]--; b.copies[m] > 0 {
		return
	}
	out.removed(m, n)
	if b.gone() {
		v.drop(b)
	}
}

// clear forgets what lies in one place.
func (v *view) clear(m kv.Medium) {
	for b := v.oldest; b != nil; b = b.next {
		if b.copies[m] = 0; b.gone() {
			v.drop(b)
		}
	}
}

// account tells everything, to readers who know nothing, or something else: first that nothing counts any more, then all
// blocks, each behind its parent. A block whose parent lies nowhere is left out: no prompt can be found in it, and routers
// take no block whose parent they do not know.
func (v *view) account(out *batch) {
	v.accounts++
	out.cleared()
	run := v.run[:0]
	for b := v.oldest; b != nil; b = b.next {
		v.chain = v.visit(b, v.chain[:0])
		for _, x := range slices.Backward(v.chain) {
			if !x.reached {
				continue
			}
			if len(run) > 0 && !continues(run[len(run)-1], x) {
				out.everywhere(run)
				run = run[:0]
			}
			run = append(run, x)
		}
	}
	out.everywhere(run)
	v.run = run
}

// visit appends b and its ancestors, up to one that was visited before, and decides whether they are reached.
func (v *view) visit(b *block, chain []*block) []*block {
	reached := false
	for b != nil {
		if b.visited == v.accounts {
			reached = b.reached
			break
		}
		b.visited = v.accounts
		chain = append(chain, b)
		if !b.hasParent {
			reached = true
			break
		}
		b = v.blocks[name{b.parent, b.group}]
	}
	for _, x := range chain {
		x.reached = reached
	}
	return chain
}

// forgetUnreached drops what the last account left out, when that account went to all readers.
func (v *view) forgetUnreached() {
	for b := v.oldest; b != nil; b = b.next {
		if !b.reached {
			v.drop(b)
		}
	}
}

// continues tells whether one event can tell of both blocks.
func continues(a, b *block) bool {
	if !b.hasParent || b.parent != a.hash || b.group != a.group || b.lora != a.lora || len(b.tokens) != len(a.tokens) {
		return false
	}
	for m := range media {
		if (a.copies[m] > 0) != (b.copies[m] > 0) {
			return false
		}
	}
	return true
}

func (v *view) add(b *block) {
	v.blocks[b.name] = b
	b.prev, v.newest = v.newest, b
	if b.prev == nil {
		v.oldest = b
	} else {
		b.prev.next = b
	}
}

// drop takes a block out. Its next remains, for who walks the list.
func (v *view) drop(b *block) {
	delete(v.blocks, b.name)
	if b.prev == nil {
		v.oldest = b.next
	} else {
		b.prev.next = b.next
	}
	if b.next == nil {
		v.newest = b.prev
	} else {
		b.next.prev = b.prev
	}
}
