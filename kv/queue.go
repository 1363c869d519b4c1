package kv

// The free queue is a doubly linked list through the blocks themselves, in the order in which free blocks will be
// handed out. Block 0, the null block, is never free and so serves as the list's sentinel: its next is the head of the
// queue, its prev the tail. Every operation is O(1); taking a block out of the middle is what a prefix hit does.

// pushTail puts b where it will be handed out last.
func (p *Pool) pushTail(b BlockID) { p.link(b, p.blocks[nullBlock].prev, nullBlock) }

// link puts b between its neighbours-to-be.
func (p *Pool) link(b, prev, next BlockID) {
	p.blocks[b].prev, p.blocks[b].next = prev, next
	p.blocks[prev].next = b
	p.blocks[next].prev = b
	p.free++
}

// unlink takes b out of the queue, wherever it stands.
func (p *Pool) unlink(b BlockID) {
	x := &p.blocks[b]
	p.blocks[x.prev].next = x.next
	p.blocks[x.next].prev = x.prev
	x.prev, x.next = nullBlock, nullBlock
	p.free--
}
