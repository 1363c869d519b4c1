// Package bench measures: the engine alone on this machine, and servers over HTTP.
//
// Engine times a model's forward pass, without scheduler or server.
//
// Load puts load on an OpenAI-compatible server and measures what its clients see. It sends the prompts of a dataset as a
// real population of clients would: at a rate of arrivals (open loop), with a bound on the requests under way (closed
// loop), or all at once. Its figures, their names and the JSON they are written in are those of vllm bench serve, so that
// scripts written for the one read the other.
//
// Pressure is a test with a verdict: thirty clients on a KV cache far too small for them, on a server of this process.
// It checks that every request gets its answer, and the same answer as alone.
package bench
