// Package executor computes plans: it owns a model's key-value memory, turns the planned requests of a step into rows,
// runs one forward pass over all of them and samples the rows that reached the end of what is known.
//
// What a request's tokens depend on is the request alone. The executor keeps for each a block table and a sampler, in
// the order
//
//	Begin, then in each plan that names it: new, running …, resumed after a preemption, running …, until Plan.Finished
//
// and a plan's other requests, its chunks and the blocks it uses leave no trace in the logits: package cpu's arithmetic
// contract says so, and the tests of this package compare with ==.
package executor
