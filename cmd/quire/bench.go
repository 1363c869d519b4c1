package main

// benchCmd groups the benchmarks.
type benchCmd struct {
	Engine   benchEngineCmd   `cmd:"" help:"Time a model's forward pass: prompts, generation, batches."`
	Sched    benchSchedCmd    `cmd:"" help:"Time the scheduler alone, in steady decode."`
	Serve    benchServeCmd    `cmd:"" help:"Put load on an OpenAI-compatible server and measure what its clients see."`
	Cache    benchCacheCmd    `cmd:"" help:"Measure what a known prefix is worth: in the pool, in memory, on disk, on a server."`
	Pressure benchPressureCmd `cmd:"" help:"Test a server whose KV cache is far too small for its clients."`
}
