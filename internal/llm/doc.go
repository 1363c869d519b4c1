// Package llm loads a model and all that serves it: file, tokenizer, chat template, weights, KV cache and engine, in this
// order, and closes them in the other.
package llm
