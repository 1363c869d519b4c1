// Package connector moves KV blocks between the pool and the tiers behind it: memory, disk, a shared store.
//
// A [Chain] is the tiers of one engine, nearest first, and implements the engine's Connector. What it knows it knows from
// memory, so that the scheduler's question, what can be loaded, is answered at once:
//
//	pool ──evicted──► ram            copied by the loop between two steps
//	pool ──filled──► buffer ──► disk, valkey     copied by the loop, written in the background
//	ram ──load──► pool                           copied by the loop, before the step that needs it
//	disk, valkey ──load──► pool                  in the background, while the request waits
//
// Stores copy out of the pool before the next step runs, so that no block of the pool is ever held for them and no decision
// of the scheduler depends on how fast a disk is (docs/decisions/0100-stores-copy-out.md). When the buffers are full the
// block is not stored, and counted: a store never delays a step.
//
// A load in the background holds blocks of the pool and so has strict rules: it ends in exactly one LoadDone, at its deadline
// at the latest, and from then on nobody writes to its blocks, whatever a stuck disk may still return. What a store returns is
// checked in a buffer of the chain's own before it is copied to the pool; what fails the check is computed again, and the
// store drops it.
//
// Everything a tier holds is named by the block's hash, which covers all tokens before it and the cache salt; the chunk's
// header also carries the fingerprint of model, layout and number format. Requests with adapters are left to the pool.
package connector
