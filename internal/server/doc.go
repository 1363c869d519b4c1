// Package server speaks the OpenAI API, as vLLM extends it, for one model.
//
// A request goes through four stages, each in a file of its own: it is decoded and checked (completions.go, chat.go),
// its prompt becomes token ids (prompt.go), the engine is asked for one answer for each choice (generate.go), and the text
// of the answers is sent as it comes (stream.go) or joined and sent whole. Both ways read the same deltas.
//
// The server keeps no state of a request outside the goroutine that serves it. When the client leaves, the request's
// context ends and with it the work in the engine. A client that reads slowly holds its own goroutine, a buffer bounded by
// max_tokens, and nothing else; a frame that cannot be written in time ends the request.
package server
