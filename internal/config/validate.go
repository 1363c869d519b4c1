package config

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// Validate reports every fault of the configuration, joined, each with the flag, the value and the range.
func (c *Serve) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, f := range []struct {
		flag  string
		value int
		least int
	}{
		{"--max-model-len", c.Model.MaxModelLen, 0},
		{"--max-logprobs", c.Model.MaxLogprobs, -1},
		{"--max-num-queued-reqs", c.HTTP.MaxNumQueuedReqs, 0},
		{"--stream-interval", c.HTTP.StreamInterval, 1},
		{"--max-num-seqs", c.Scheduler.MaxNumSeqs, 1},
		{"--max-num-batched-tokens", c.Scheduler.MaxNumBatchedTokens, 1},
		{"--long-prefill-token-threshold", c.Scheduler.LongPrefillTokenThreshold, 0},
		{"--kv-cache-tokens", c.Cache.KVCacheTokens, 0},
		{"--threads", c.CPU.Threads, 0},
	} {
		if f.value < f.least {
			fault("%s must be at least %d, got %d", f.flag, f.least, f.value)
		}
	}
	if c.HTTP.Port < 0 || c.HTTP.Port > 65535 {
		fault("--port must be in [0, 65535], got %d", c.HTTP.Port)
	}
	if !(c.Scheduler.Watermark >= 0 && c.Scheduler.Watermark <= 1) {
		fault("--watermark must be in [0, 1], got %v", c.Scheduler.Watermark)
	}
	if c.Model.MaxModelLen == 1 {
		fault("--max-model-len must leave room for a prompt and an answer, got 1")
	}
	if c.Cache.KVCacheTokens > 0 && c.Cache.KVCacheMemory > 0 {
		fault("--kv-cache-tokens and --kv-cache-memory both give the size of the KV cache: leave one out")
	}
	if c.Cache.BlockSize > 0 && c.Cache.KVCacheTokens%c.Cache.BlockSize != 0 {
		fault("--kv-cache-tokens must be a multiple of the block size %d, got %d", c.Cache.BlockSize, c.Cache.KVCacheTokens)
	}
	if !c.Scheduler.EnableChunkedPrefill && c.Model.MaxModelLen > c.Scheduler.MaxNumBatchedTokens {
		fault("without chunked prefill --max-num-batched-tokens must be at least --max-model-len %d, got %d",
			c.Model.MaxModelLen, c.Scheduler.MaxNumBatchedTokens)
	}
	if c.HTTP.MaxRequestBytes < 1 {
		fault("--max-request-bytes must be at least 1, got %d", c.HTTP.MaxRequestBytes)
	}
	if c.Log.LogStatsInterval <= 0 && !c.Log.DisableLogStats {
		fault("--log-stats-interval must be above 0; --disable-log-stats turns the line off")
	}
	if c.HTTP.StallTimeout <= 0 {
		fault("--stall-timeout must be above 0, got %v", c.HTTP.StallTimeout)
	}
	if (c.HTTP.SSLCertfile == "") != (c.HTTP.SSLKeyfile == "") {
		fault("--ssl-certfile and --ssl-keyfile belong together: give both or neither")
	}
	for _, key := range c.HTTP.APIKey {
		if strings.TrimSpace(key) == "" {
			fault("--api-key must not be empty: leave it out to serve without one")
		}
	}
	return errors.Join(append(errs, c.Events.validate(c.Cache.EnablePrefixCaching))...)
}

// Exposed reports whether the server can be reached from other machines without a key.
func (c *Serve) Exposed() bool {
	if len(c.HTTP.APIKey) > 0 || c.HTTP.Host == "localhost" {
		return false
	}
	ip := net.ParseIP(c.HTTP.Host)
	return ip == nil || !ip.IsLoopback()
}
