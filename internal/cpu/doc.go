// Package cpu computes a transformer's forward pass on the processor: matrix products over packed weights, norms,
// rotary embedding, activation functions and paged attention, on a pool of persistent workers.
//
// A Device is a Level (which instructions may be used) and its workers. Weights are packed once into Matrix values,
// panels of 16 output rows. Activations live in Acts, the key-value cache in KV. One goroutine at a time may call a
// Device's methods; each method spreads its work over the workers and returns when all of it is done.
//
// # The arithmetic contract
//
// Every level gives the same bits: the plain Go functions of this package are the specification and the assembly is
// compared with them by ==. A row's result depends on that row alone, never on the rows, chunks, threads or blocks it
// was computed with. docs/arithmetic.md states the contract; each kernel names the section it implements. NaN results
// are NaN on every level, their payload is not part of the contract.
package cpu
