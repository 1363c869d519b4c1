package metric

import "slices"

// kind is what a metric counts.
type kind string

const (
	gauge     kind = "gauge"
	counter   kind = "counter"
	histogram kind = "histogram"
)

// spec describes one metric. The table of specs is all there is: the registry, the page and the manual come from it.
type spec struct {
	name    string
	kind    kind
	unit    string // of the value: tokens, seconds, requests …
	labels  []string
	buckets buckets
	help    string
}

// buckets are the upper bounds of a histogram.
type buckets struct {
	bounds []float64
	// upTo125 is set for the series 1, 2, 5, 10, 20, 50 … up to the model's context.
	upTo125 bool
}

func bounds(b ...float64) buckets { return buckets{bounds: b} }

// The buckets are vLLM's (vllm/v1/metrics/loggers.py), so that dashboards made for it show the same.
func firstTokenBuckets() buckets {
	return bounds(.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560)
}

func perTokenBuckets() buckets {
	return bounds(.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
}

func requestBuckets() buckets {
	return bounds(.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
}

func tokenBuckets() buckets { return buckets{upTo125: true} }

// table lists every metric, in the order of the manual.
func table() []spec {
	return slices.Concat(engineTable(), requestTable(), ownTable(), tierTable(), eventTable())
}

// engineTable is the state of the engine, and what it has counted.
func engineTable() []spec {
	return []spec{
		{name: "vllm:num_requests_running", kind: gauge, unit: "requests", help: "Requests that hold KV blocks and take part in steps."},
		{name: "vllm:num_requests_waiting", kind: gauge, unit: "requests", help: "Requests that wait, for whatever reason."},
		{
			name: "vllm:num_requests_waiting_by_reason", kind: gauge, unit: "requests", labels: []string{"reason"},
			help: "Requests that wait: for capacity, or deferred by something else. The two sum to num_requests_waiting.",
		},
		{name: "vllm:kv_cache_usage_perc", kind: gauge, unit: "0 to 1", help: "Share of the KV blocks that requests hold."},
		{
			name: "vllm:cache_config_info", kind: gauge, unit: "1", labels: []string{
				"block_size", "num_gpu_blocks", "num_cpu_blocks",
				"cache_dtype", "enable_prefix_caching",
			},
			help: "Shape of the KV cache, as labels. num_gpu_blocks is vLLM's word for the blocks of the pool.",
		},
		{name: "vllm:num_preemptions_total", kind: counter, unit: "preemptions", help: "Requests put back because the KV cache was full."},
		{name: "vllm:prefix_cache_queries_total", kind: counter, unit: "tokens", help: "Prompt tokens looked up in the prefix cache."},
		{name: "vllm:prefix_cache_hits_total", kind: counter, unit: "tokens", help: "Prompt tokens found in the prefix cache."},
		{
			name: "vllm:external_prefix_cache_queries_total", kind: counter, unit: "tokens",
			help: "Prompt tokens looked up in the tiers behind the prefix cache.",
		},
		{
			name: "vllm:external_prefix_cache_hits_total", kind: counter, unit: "tokens",
			help: "Prompt tokens found in the tiers behind the prefix cache.",
		},
		{name: "vllm:prompt_tokens_total", kind: counter, unit: "tokens", help: "Prompt tokens of requests that came to their first token."},
		{
			name: "vllm:prompt_tokens_by_source_total", kind: counter, unit: "tokens", labels: []string{"source"},
			help: "prompt_tokens_total by where their KV came from: local_compute, local_cache_hit or external_kv_transfer.",
		},
		{name: "vllm:prompt_tokens_cached_total", kind: counter, unit: "tokens", help: "Prompt tokens that were not computed again."},
		{name: "vllm:generation_tokens_total", kind: counter, unit: "tokens", help: "Tokens generated."},
		{
			name: "vllm:request_success_total", kind: counter, unit: "requests", labels: []string{"finished_reason"},
			help: "Requests that ended: by stop, length, abort, error or cache_threshold.",
		},
	}
}

// requestTable is what is observed of requests and steps.
func requestTable() []spec {
	return []spec{
		{
			name: "vllm:time_to_first_token_seconds", kind: histogram, unit: "seconds", buckets: firstTokenBuckets(),
			help: "From the arrival of a request to its first token.",
		},
		{
			name: "vllm:inter_token_latency_seconds", kind: histogram, unit: "seconds", buckets: perTokenBuckets(),
			help: "Between a token of a request and the one before.",
		},
		{
			name: "vllm:request_time_per_output_token_seconds", kind: histogram, unit: "seconds", buckets: perTokenBuckets(),
			help: "Mean time between the tokens of a request, at its end.",
		},
		{
			name: "vllm:e2e_request_latency_seconds", kind: histogram, unit: "seconds", buckets: requestBuckets(),
			help: "From the arrival of a request to its end.",
		},
		{
			name: "vllm:request_queue_time_seconds", kind: histogram, unit: "seconds", buckets: requestBuckets(),
			help: "From the arrival of a request to its first step.",
		},
		{
			name: "vllm:request_inference_time_seconds", kind: histogram, unit: "seconds", buckets: requestBuckets(),
			help: "From the first step of a request to its last token.",
		},
		{
			name: "vllm:request_prefill_time_seconds", kind: histogram, unit: "seconds", buckets: requestBuckets(),
			help: "From the first step of a request to its first token.",
		},
		{
			name: "vllm:request_decode_time_seconds", kind: histogram, unit: "seconds", buckets: requestBuckets(),
			help: "From the first token of a request to its last.",
		},
		{name: "vllm:request_prompt_tokens", kind: histogram, unit: "tokens", buckets: tokenBuckets(), help: "Prompt tokens a request."},
		{name: "vllm:request_generation_tokens", kind: histogram, unit: "tokens", buckets: tokenBuckets(), help: "Tokens generated a request."},
		{
			name: "vllm:request_max_num_generation_tokens", kind: histogram, unit: "tokens", buckets: tokenBuckets(),
			help: "Tokens of the longest choice of a request. Quire runs each choice as a request, so it equals request_generation_tokens.",
		},
		{
			name: "vllm:request_params_n", kind: histogram, unit: "choices", buckets: bounds(1, 2, 5, 10, 20),
			help: "n of requests: how many choices they ask for.",
		},
		{
			name: "vllm:request_params_max_tokens", kind: histogram, unit: "tokens", buckets: tokenBuckets(),
			help: "max_tokens of requests that name it.",
		},
		{
			name: "vllm:request_prefill_kv_computed_tokens", kind: histogram, unit: "tokens", buckets: tokenBuckets(),
			help: "Prompt tokens a request whose KV had to be computed.",
		},
		{
			name: "vllm:iteration_tokens_total", kind: histogram, unit: "tokens",
			buckets: bounds(1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
			help:    "Tokens computed in a step. A histogram, whatever its name says.",
		},
	}
}

// ownTable is what vLLM has under another name or not at all.
func ownTable() []spec {
	return []spec{
		{
			name: "http_requests_total", kind: counter, unit: "requests", labels: []string{"method", "handler", "status"},
			help: "HTTP requests answered, by path and class of status.",
		},
		{
			name: "http_request_duration_seconds", kind: histogram, unit: "seconds", labels: []string{"method", "handler"},
			buckets: bounds(.1, .5, 1), help: "From the header of a request to the end of its answer.",
		},
		{
			name: "quire_step_duration_seconds", kind: histogram, unit: "seconds",
			buckets: bounds(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10), help: "Time a step computes.",
		},
		{name: "quire_recomputed_tokens_total", kind: counter, unit: "tokens", help: "Tokens computed again after a preemption."},
		{name: "quire_steps_total", kind: counter, unit: "steps", help: "Steps planned."},
		{name: "quire_failed_steps_total", kind: counter, unit: "steps", help: "Steps that ended in an error."},
		{name: "quire_kv_blocks_free", kind: gauge, unit: "blocks", help: "KV blocks that no request holds; cached ones are free too."},
		{name: "quire_kv_blocks_cached", kind: gauge, unit: "blocks", help: "KV blocks known to the prefix cache."},
		{name: "quire_healthy", kind: gauge, unit: "0 or 1", help: "1 while GET /health answers 200."},
	}
}

// tierTable lists the metrics of the tiers behind the KV cache.
func tierTable() []spec {
	tier := []string{"tier"}
	return []spec{
		{name: "quire_kv_tier_blocks", kind: gauge, unit: "blocks", labels: tier, help: "KV blocks that a tier holds."},
		{name: "quire_kv_tier_bytes", kind: gauge, unit: "bytes", labels: tier, help: "Space that these take."},
		{
			name: "quire_kv_tier_capacity_bytes", kind: gauge, unit: "bytes", labels: tier,
			help: "Space that a tier may take; 0 if that is not for Quire to say.",
		},
		{name: "quire_kv_tier_hits_total", kind: counter, unit: "blocks", labels: tier, help: "Blocks brought back from a tier."},
		{
			name: "quire_kv_tier_misses_total", kind: counter, unit: "blocks", labels: tier,
			help: "Blocks that a tier was asked for, once a request, and does not hold.",
		},
		{
			name: "quire_kv_tier_loaded_bytes_total", kind: counter, unit: "bytes", labels: tier,
			help: "Bytes brought back from a tier.",
		},
		{
			name: "quire_kv_tier_load_seconds_total", kind: counter, unit: "seconds", labels: tier,
			help: "Time that took, summed over transfers side by side.",
		},
		{name: "quire_kv_tier_stored_bytes_total", kind: counter, unit: "bytes", labels: tier, help: "Bytes given to a tier."},
		{
			name: "quire_kv_tier_store_seconds_total", kind: counter, unit: "seconds", labels: tier,
			help: "Time that took, summed over transfers side by side.",
		},
		{
			name: "quire_kv_tier_evictions_total", kind: counter, unit: "chunks", labels: tier,
			help: "Chunks that a tier gave up for others.",
		},
		{
			name: "quire_kv_tier_not_stored_total", kind: counter, unit: "chunks", labels: []string{"tier", "reason"},
			help: "Chunks not stored because the buffers were full or the breaker open: a store never delays a step.",
		},
		{
			name: "quire_kv_tier_failures_total", kind: counter, unit: "transfers", labels: []string{"tier", "cause"},
			help: "Transfers that failed: missing, corrupt, read, write, deadline or find. What they were to bring is computed.",
		},
		{
			name: "quire_kv_tier_breaker_open", kind: gauge, unit: "0 or 1", labels: tier,
			help: "1 while a tier is set aside after failures in a row.",
		},
	}
}

// eventTable lists the metrics of the stream of KV events.
func eventTable() []spec {
	return []spec{
		{
			name: "quire_kv_events_published_total", kind: counter, unit: "batches",
			help: "Batches of KV events published: one a step that changed something.",
		},
		{name: "quire_kv_events_blocks", kind: gauge, unit: "blocks", help: "Blocks that a reader of the events knows."},
		{
			name: "quire_kv_events_subscribers", kind: gauge, unit: "subscribers", labels: []string{"state"},
			help: "Subscribers that keep up (current), and that lost batches and have not caught up since (behind).",
		},
		{
			name: "quire_kv_events_dropped_total", kind: counter, unit: "batches",
			help: "Batches that subscribers lost because they lagged too far, summed over subscribers. They may ask for a replay.",
		},
		{
			name: "quire_kv_events_overflows_total", kind: counter, unit: "steps",
			help: "Steps whose events found the queue full: all readers were told to forget all blocks.",
		},
		{
			name: "quire_kv_events_replays_total", kind: counter, unit: "replays", labels: []string{"answer"},
			help: "Questions for missed batches, answered with these (ring), or with a snapshot because they were gone.",
		},
	}
}
