package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// scheduler returns the configuration as package sched has it.
func (c *TraceConfig) scheduler() (sched.Config, error) {
	cfg := sched.Config{
		Blocks: c.NumBlocks - 1, BlockSize: c.BlockSize, MaxNumSeqs: c.MaxNumSeqs,
		MaxNumBatchedTokens: c.MaxNumBatchedTokens, MaxModelLen: c.MaxModelLen,
		NoChunkedPrefill: !c.EnableChunkedPrefill, LongPrefillThreshold: c.LongPrefillThreshold,
		NoPrefixCaching: !c.EnablePrefixCaching, NoFullSequenceCheck: !c.ReserveFullISL, Watermark: c.Watermark,
		MaxLoRAs: c.MaxLoRAs, KVEvents: c.KVEvents, PipelineDepth: c.PipelineDepth, AsyncScheduling: c.AsyncScheduling,
		SpecTokens: c.NumSpecTokens, DraftKV: c.Eagle,
	}
	switch c.Policy {
	case "fcfs":
	case "priority":
		cfg.Policy = sched.Priority
	default:
		return cfg, fmt.Errorf("unknown policy %q", c.Policy)
	}
	switch c.LoadFailurePolicy {
	case "recompute":
	case "fail":
		cfg.LoadFailure = sched.Fail
	default:
		return cfg, fmt.Errorf("unknown load failure policy %q", c.LoadFailurePolicy)
	}
	for _, g := range c.Groups {
		group := kv.Group{}
		if window, ok := strings.CutPrefix(g, "swa:"); ok {
			n, err := strconv.Atoi(window)
			if err != nil || n < 1 {
				return cfg, fmt.Errorf("cache group %q: window is not a positive number", g)
			}
			group.Window = n
		} else if g != "full" {
			return cfg, fmt.Errorf("unknown cache group %q", g)
		}
		cfg.Groups = append(cfg.Groups, group)
	}
	return cfg, nil
}

// request returns the request as package sched has it.
func (r *TraceRequest) request() *sched.Request {
	out := &sched.Request{
		ID: sched.RequestID(r.ID), Prompt: r.promptTokens(), MaxTokens: r.MaxTokens, MinTokens: r.MinTokens,
		Priority: r.Priority, Arrival: r.ArrivalTime, EOS: []int32{traceEOS},
		CacheSalt: r.Salt, SkipCache: r.SkipCache, Grammar: r.GrammarReady != nil || r.GrammarError != nil,
	}
	if r.StopAt != nil {
		out.StopTokenIDs = []int32{traceStop}
	}
	if r.LoRA != nil {
		out.LoRA = "lora" + strconv.Itoa(*r.LoRA)
	}
	return out
}
