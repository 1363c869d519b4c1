// Package engine runs the scheduler and the executor for many clients.
//
// One goroutine, the loop, owns both. It takes in what clients asked since the last step (new requests, aborts), lets the
// scheduler plan, has the executor compute, applies aborts that came meanwhile, gives the results to the scheduler and
// hands the tokens to their requests:
//
//	Submit, Abort ──► inbox ──► loop: Schedule → Execute → Apply ──► Handle ──► Next, TextStream
//
// The loop never waits for a client. An inbox entry is a request that Submit has counted against the queue's limits, or
// an abort of such a request, so the inbox is bounded; a Handle keeps at most the MaxTokens tokens its request may have. With
// nothing to do the loop is parked, not polling.
//
// What goes wrong stays where it is: a row that cannot be sampled ends its request, a step that fails ends the requests of
// the step. A panic in the loop ends every request with an error, and Health says so.
package engine
