// Package config is the configuration of a server: one struct, filled once from flags and the environment, validated
// once, then read-only. Its tags are the command line (package kong reads them) and the manual: docs/configuration.md is
// written from them, and a test holds the two together.
//
// Flags have vLLM's names wherever vLLM has the flag. Each flag can also be set by an environment variable, QUIRE_ and
// the flag's name in capitals; the flag wins.
package config

//go:generate go test -run TestManual -update .

// Serve configures quire serve. Zero means "the server chooses" wherever that makes sense.
type Serve struct {
	Model     Model     `embed:"" group:"Model"`
	HTTP      HTTP      `embed:"" group:"Server"`
	Scheduler Scheduler `embed:"" group:"Scheduler"`
	Cache     Cache     `embed:"" group:"KV cache"`
	Events    KVEvents  `embed:"" group:"KV events"`
	CPU       CPU       `embed:"" group:"CPU"`
	Log       Log       `embed:"" group:"Logs"`
}

// Model says what is served, and what requests get that do not say otherwise.
type Model struct {
	// "" is the default model.
	Model string `placeholder:"NAME|FILE" help:"Model: a name such as smollm2:135m, hf:org/repo/file.gguf, or a GGUF file."`
	// Empty is the model's own name. The first is the one in answers.
	ServedModelName []string `placeholder:"NAME" help:"Names of the model in the API, its own by default; answers use the first."`
	// Tokens, 2 up to the model's context; 0 is the smaller of the model's context and the KV cache.
	MaxModelLen int `placeholder:"TOKENS" help:"Longest request, prompt and answer together; the model's context by default."`
	// A path, or the template itself when it holds a brace.
	ChatTemplate string `placeholder:"FILE" help:"Jinja template to use instead of the model's own: a file, or the template itself."`
	// auto reads general.sampling.* of the file; vllm is temperature 1 and nothing else.
	GenerationConfig string `default:"auto" enum:"auto,vllm" help:"Default sampling: auto takes the model's advice, vllm none."`
	// Used with the request's id, so that two requests differ unless they name a seed.
	Seed uint64 `default:"0" help:"Key of the random numbers of requests that name no seed."`
	// -1 up.
	MaxLogprobs int `default:"20" help:"Most alternatives a request may ask for at a position; -1 has no limit."`
}

// HTTP says how clients reach the server and what they may do.
type HTTP struct {
	// A name or an address.
	Host string `default:"127.0.0.1" help:"Address to listen on; 0.0.0.0 is all of them."`
	// 0 … 65535.
	Port int `default:"8000" help:"Port to listen on; 0 takes a free one and prints it."`
	// Empty lets anyone in.
	APIKey Keys `name:"api-key" placeholder:"KEY" help:"Bearer token that clients must send for paths under /v1; several may be given."`
	// PEM; both or neither.
	SSLCertfile string `name:"ssl-certfile" placeholder:"FILE" help:"Certificate; with it the server speaks HTTPS."`
	// See SSLCertfile.
	SSLKeyfile string `name:"ssl-keyfile" placeholder:"FILE" help:"Key of the certificate."`
	// At least 1.
	MaxRequestBytes Bytes `default:"16MiB" help:"Largest body of a request."`
	// Requests, 0 up.
	MaxNumQueuedReqs int `default:"1024" help:"Most requests that wait; more are answered 503 at once. 0 has no limit."`
	// Tokens, 1 up.
	StreamInterval int `default:"1" help:"Tokens that a frame of a stream carries."`
	// 0 ends them at once.
	ShutdownTimeout Seconds `default:"25s" help:"Time that running requests have after SIGTERM; a second signal ends them."`
	// They are for whoever runs the server: --api-key guards them too.
	DevEndpoints bool `help:"Offer /pause, /resume, /is_paused and /kv_cache/blocks."`
	// Above 0.
	StallTimeout Seconds `default:"30s" help:"Time without progress, with work waiting, until /health answers 503."`
}

// Scheduler says which tokens of which requests are computed in a step.
type Scheduler struct {
	// Requests, 1 up.
	MaxNumSeqs int `default:"64" help:"Most requests that run at the same time."`
	// Tokens, 1 up.
	MaxNumBatchedTokens int `default:"512" help:"Most tokens computed in one step, over all requests."`
	// priority heeds the field priority of requests, lower first.
	SchedulingPolicy string `default:"fcfs" enum:"fcfs,priority" help:"Order of waiting requests: by arrival, or by priority."`
	// Without it a prompt is computed in one step, and must fit one.
	EnableChunkedPrefill bool `default:"true" negatable:"" help:"Compute a long prompt in several steps, beside running answers."`
	// Tokens, 0 up.
	LongPrefillTokenThreshold int `default:"0" help:"Most prompt tokens of one request in a step; 0 has no limit."`
	// 0 … 1.
	Watermark float64 `default:"0.0625" help:"Share of the KV cache that an admission leaves free while others run."`
}

// Cache sizes the KV cache. Without a size it has room for 32,768 tokens or one longest request.
type Cache struct {
	// Tokens.
	BlockSize int `default:"16" enum:"8,16,32" help:"Tokens in a block."`
	// Never changes an answer.
	EnablePrefixCaching bool `default:"true" negatable:"" help:"Share the blocks of prompts that begin alike."`
	// Never changes an answer.
	DisableHybrid bool `name:"disable-hybrid-kv-cache-manager" help:"Keep the whole context also in layers that see a window of it."`
	// A multiple of BlockSize; excludes KVCacheMemory. With sliding windows it is tokens of requests as long as may be; short
	// ones, of which windows save less, fit in smaller number.
	KVCacheTokens int `name:"kv-cache-tokens" placeholder:"TOKENS" help:"Size of the KV cache in tokens, exactly."`
	// Rounded down to whole blocks; excludes KVCacheTokens.
	KVCacheMemory Bytes `name:"kv-cache-memory" aliases:"kv-cache-memory-bytes" placeholder:"BYTES" help:"Size of the KV cache, such as 2GiB."`
	// auto is an eighth of the free memory, at most 8 GiB, taken as it is needed; 0 is none.
	KVRAM Budget `name:"kv-ram" default:"auto" help:"Memory for KV that left the cache; auto is an eighth of what is free, 0 none."`
	// auto is kv in $QUIRE_HOME or quire/kv in the user's cache folder, left out with a warning if it cannot be used; off is none.
	KVDisk string `name:"kv-disk" default:"auto" help:"Folder where KV outlives a restart; auto is in the user's cache, off none."`
	// auto is a tenth of the free space, at most 10 GiB; 0 is none.
	KVDiskSize Budget `name:"kv-disk-size" default:"auto" help:"Space there a model; auto is a tenth of what is free, up to 10GiB."`
	// valkey:// is redis://, a second s means TLS; user:password@, /database, ?cluster=true. It may be absent.
	KVValkey string `name:"kv-valkey" placeholder:"URL" help:"Valkey or Redis server where replicas share KV, such as redis://host:6379."`
}

// CPU says what computes.
type CPU struct {
	// 0 is what the machine, the cgroup and the affinity give.
	Threads int `placeholder:"N" help:"Threads that compute; all the process may use by default."`
	// All give the same bits.
	CPU string `name:"cpu" default:"auto" enum:"auto,generic,avx2,avx512vnni,amx" help:"Kernels to use; auto takes the fastest the CPU has."`
}

// Log says what is logged. Lines go to standard error; none holds a prompt or an answer.
type Log struct {
	// debug also shows each decision of the scheduler.
	LogLevel string `default:"info" enum:"debug,info,warn,error" help:"Least urgent lines to log."`
	// For machines to read.
	LogJSON bool `name:"log-json" help:"Log JSON."`
	// Ids, counts and times, never text.
	EnableLogRequests bool `help:"Log a line for each request."`
	// See LogStatsInterval.
	DisableLogStats bool `help:"Do not log throughput."`
	// Above 0.
	LogStatsInterval Seconds `default:"10s" help:"Time between two lines of throughput, while there is work."`
	// Written over if it exists.
	RecordSchedule string `placeholder:"FILE" help:"Record what the scheduler is told and decides, for quire sim replay."`
}
