// Package kv is the paged KV cache as pure bookkeeping: which block holds which tokens of which request.
//
// A model's keys and values are kept in blocks of a fixed number of tokens. The package owns no memory: a BlockID
// names a block, and whoever computes decides where its bytes are. It is pure: no goroutine, clock, random source or
// I/O, so that the same calls give the same answers, block numbers included.
//
//   - [Pool] holds all blocks: which are free, in which order the free ones will be taken, and which full block is
//     registered under which hash. A freed block keeps its hash until it is handed out again, so eviction is lazy.
//   - [Chain] hashes a request's tokens block by block: sha256 over canonical CBOR, each hash covering its parent, equal
//     to vLLM's sha256_cbor, so that keys can be shared between replicas.
//   - [Table] is the block table of one request, one list per cache group.
//   - [Cache] joins them: look a prefix up, say what a request needs, attach hits, grow, register, release.
//   - [Event] values tell routers what the cache holds.
//
// A request's tables go through one life: Lookup and Attach when it is admitted, Grow and Register each step, Release
// when it ends or is preempted.
//
// # Invariants
//
// Numbered as in package sched, which adds 4 to 8.
//
//  1. A block is either in the free queue or referenced, never both; free + referenced = usable blocks.
//  2. A block's references are the tables that hold it, plus the pins of transfers in flight.
//  3. A registered block is full and is never written again while it is registered.
package kv
