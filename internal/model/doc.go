// Package model runs decoder-only language models read from GGUF files.
//
// An architecture is one row of the table in arch.go: which rope layout, which activation, which norms and biases,
// which layers look through a window. [ParseConfig] turns a file's metadata into a [Config], [Load] checks every tensor
// against the shapes the Config implies and packs the weights for the kernels of package cpu, and [Stepper.Forward] runs
// one step over all rows of all requests at once. Everything a file asks for and this package does not do is refused
// by name, with the numbers; nothing is skipped in silence, an unknown tensor included.
//
// The forward pass holds the arithmetic contract of package cpu: what a row computes depends on the model, the row's
// token, its position and the keys and values its block table leads to, and on nothing else. Batch, chunk, thread
// count, block size and CPU level change no bit.
package model
