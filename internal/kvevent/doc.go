// Package kvevent tells routers which blocks the KV cache holds: vLLM's stream of KV events, over ZeroMQ.
//
// A [Stream] is given the events of each step by the engine's loop and never makes it wait: events go into a bounded queue,
// and one goroutine makes a numbered batch of them, encodes it once and puts it into a ring. Subscribers and replays read
// the ring, each at its own pace:
//
//	loop ──Publish──► queue ──► view, encoder ──► ring ──► subscriber, at a place of its own in the ring
//	                                               └────► replay, for who missed something
//
// The [view] is what the stream has told: the blocks that a reader who got every batch knows. It turns the pool's events,
// which are about blocks of memory, into events about content: a hash is stored when its first block is, and removed with its
// last. And it is the answer to a replay from a number that the ring no longer holds: a batch that clears everything and then
// stores all that is there, parents before children, followed by empty batches up to the present, so that numbers have no gap.
// vLLM has no answer to that question, and a router that comes late never gets to know it (vLLM #40363).
//
// Batch 0 clears everything: what the last process held is gone, and nobody else says so (llm-d-router #2853). Subscribers that
// come within seconds of it are sent it too.
//
// What does not fit a bound is dropped and counted, and the stream then says less than the truth, never more. A subscriber
// that lags too far goes on with the newest batch: it sees one gap, and may ask for a replay. If the queue of events is full,
// the view is cleared, for everybody, and grows again from there.
//
// docs/kv-events.md has the bytes.
package kvevent
