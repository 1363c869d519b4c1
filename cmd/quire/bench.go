package main

// benchCmd groups the benchmarks.
type benchCmd struct {
	Engine benchEngineCmd `cmd:"" help:"Time a model's forward pass: prompts, generation, batches."`
	Serve  benchServeCmd  `cmd:"" help:"Put load on an OpenAI-compatible server and measure what its clients see."`
}
