package openai

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxChoices   = 128  // n; OpenAI's own limit
	maxStops     = 64   // stop strings; each token is compared with every one of them
	maxCacheSalt = 1024 // bytes, as in vLLM
)

// Limits are the bounds a server puts on requests.
type Limits struct {
	MaxLogprobs int  // most alternatives a position; -1 has no bound
	VocabSize   int  // token ids lie below it
	Priorities  bool // the scheduler heeds priorities
}

// Validate reports the first value that is not allowed, or nil. The prompt's length is checked where it is tokenized.
func (r *CompletionRequest) Validate(lim Limits) *Fault {
	switch {
	case given(r.PromptEmbeds):
		return unsupported("prompt_embeds")
	case r.Suffix != "":
		return unsupported("suffix")
	case r.Prompt.Len() == 0:
		return faultf("prompt", "prompt is empty: give a string, token ids or a list of them")
	}
	for i, text := range r.Prompt.Texts {
		if text == "" {
			return faultf(nth("prompt", i, r.Prompt.Len()), "prompt is empty")
		}
	}
	for i, ids := range r.Prompt.Tokens {
		param := nth("prompt", i, r.Prompt.Len())
		if len(ids) == 0 {
			return faultf(param, "prompt is empty")
		}
		if f := tokenIDsFault(param, ids, lim.VocabSize); f != nil {
			return f
		}
	}
	if f := maxTokensFault("max_tokens", r.MaxTokens, r.MinTokens, r.Echo); f != nil {
		return f
	}
	if f := logprobsFault("logprobs", r.Logprobs, lim.MaxLogprobs); f != nil {
		return f
	}
	return r.Common.validate(lim)
}

// nth names one of several prompts, or the only one.
func nth(param string, i, n int) string {
	if n == 1 {
		return param
	}
	return fmt.Sprintf("%s.%d", param, i)
}

// Validate reports the first value that is not allowed, or nil.
func (r *ChatRequest) Validate(lim Limits) *Fault {
	if len(r.Messages) == 0 {
		return faultf("messages", "messages is empty: give at least one message")
	}
	if f := r.toolsFault(); f != nil {
		return f
	}
	switch {
	case r.ChatTemplate != nil:
		return faultf("chat_template", "chat_template is not accepted in requests; the server's --chat-template sets it")
	case r.ContinueFinalMessage && (r.AddGenerationPrompt == nil || *r.AddGenerationPrompt):
		return faultf("continue_final_message", "continue_final_message needs add_generation_prompt to be false")
	case r.TopLogprobs != nil && *r.TopLogprobs != 0 && !r.Logprobs:
		return faultf("top_logprobs", "top_logprobs needs logprobs to be true")
	case given(r.ChatTemplateKwargs) && r.ChatTemplateKwargs.Kind() != '{':
		return faultf("chat_template_kwargs", "chat_template_kwargs must be an object, got %s", show(r.ChatTemplateKwargs))
	}
	if f := logprobsFault("top_logprobs", r.TopLogprobs, lim.MaxLogprobs); f != nil {
		return f
	}
	if f := maxTokensFault("max_completion_tokens", r.MaxCompletionTokens, r.MinTokens, false); f != nil {
		return f
	}
	if f := maxTokensFault("max_tokens", r.MaxTokens, r.MinTokens, false); f != nil && r.MaxCompletionTokens == nil {
		return f
	}
	return r.Common.validate(lim)
}

// toolsFault refuses tools unless they are only shown to the model: calls are not parsed from its answer.
func (r *ChatRequest) toolsFault() *Fault {
	choice := strings.Trim(string(r.ToolChoice), `"`)
	none := !given(r.ToolChoice) || choice == "none"
	switch {
	case given(r.Tools) && r.Tools.Kind() != '[':
		return faultf("tools", "tools must be a list, got %s", show(r.Tools))
	case given(r.Tools) && firstIsEnd(r.Tools):
		return faultf("tools", "tools is empty: leave it out or name a tool")
	case !given(r.Tools) && !none:
		return faultf("tool_choice", "tool_choice needs tools")
	case given(r.Tools) && choice != "none":
		return faultf("tools", "tools are supported only with tool_choice \"none\": this server does not parse tool calls")
	}
	return nil
}

// firstIsEnd reports whether a JSON list is empty.
func firstIsEnd(list jsontext.Value) bool {
	return strings.TrimLeft(string(list[1:]), " \t\r\n")[0] == ']'
}

// validate checks the fields that both kinds of completion share.
func (c *Common) validate(lim Limits) *Fault {
	for _, check := range []func(Limits) *Fault{c.refusedFault, c.samplingFault, c.stoppingFault, c.outputFault, c.servingFault} {
		if f := check(lim); f != nil {
			return f
		}
	}
	return nil
}

// refusedFault refuses what Quire does not offer.
func (c *Common) refusedFault(Limits) *Fault {
	for _, field := range []struct {
		name  string
		value jsontext.Value
	}{
		{"structured_outputs", c.StructuredOutputs},
		{"guided_json", c.GuidedJSON},
		{"guided_regex", c.GuidedRegex},
		{"guided_choice", c.GuidedChoice},
		{"guided_grammar", c.GuidedGrammar},
		{"repetition_detection", c.RepetitionDetection},
		{"thinking_token_budget", c.ThinkingTokenBudget},
		{"logprob_token_ids", c.LogprobTokenIDs},
		{"watermarking", c.Watermarking},
		{"logits_processors", c.LogitsProcessors},
		{"mm_processor_kwargs", c.MultimodalProcessing},
	} {
		if given(field.value) {
			return unsupported(field.name)
		}
	}
	if c.UseBeamSearch {
		return unsupported("use_beam_search")
	}
	if c.BestOf != nil && *c.BestOf != c.Choices() {
		return faultf("best_of", "best_of %d is not supported: it must equal n, which is %d", *c.BestOf, c.Choices())
	}
	if !given(c.ResponseFormat) {
		return nil
	}
	var format struct {
		Type string `json:"type"`
	}
	if err := decodeAt("response_format", c.ResponseFormat, &format); err != nil {
		return err.(*Fault)
	}
	if format.Type != "text" {
		return faultf("response_format.type", "response_format %q is not supported: this server writes \"text\" only", format.Type)
	}
	return nil
}

// samplingFault checks what shapes the distribution, as far as it is a matter of form: the sampler knows its own ranges.
func (c *Common) samplingFault(Limits) *Fault {
	switch {
	case c.TopK != nil && *c.TopK < -1:
		return faultf("top_k", "top_k must be 0 (off) or at least 1, got %d", *c.TopK)
	case c.N != nil && (*c.N < 1 || *c.N > maxChoices):
		return faultf("n", "n must be in [1, %d], got %d", maxChoices, *c.N)
	case c.AllowedTokenIDs != nil && len(c.AllowedTokenIDs) == 0:
		return faultf("allowed_token_ids", "allowed_token_ids is empty: no token could be sampled")
	}
	return nil
}

// stoppingFault checks what ends the answer.
func (c *Common) stoppingFault(Limits) *Fault {
	if len(c.Stop) > maxStops {
		return faultf("stop", "stop holds %d strings; the limit is %d", len(c.Stop), maxStops)
	}
	for i, s := range c.Stop {
		if s == "" {
			return faultf(nth("stop", i, len(c.Stop)), "stop must not hold an empty string")
		}
	}
	return nil
}

// outputFault checks what the answer shows.
func (c *Common) outputFault(lim Limits) *Fault {
	switch {
	case c.StreamOptions != nil && !c.Stream:
		return faultf("stream_options", "stream_options needs stream to be true")
	case c.PromptLogprobs != nil && c.Stream && *c.PromptLogprobs != 0:
		return faultf("prompt_logprobs", "prompt_logprobs is not available with stream")
	case c.StreamInterval != nil && *c.StreamInterval < 1:
		return faultf("stream_interval", "stream_interval must be at least 1, got %d", *c.StreamInterval)
	}
	return logprobsFault("prompt_logprobs", c.PromptLogprobs, lim.MaxLogprobs)
}

// servingFault checks what concerns the queue and the cache.
func (c *Common) servingFault(lim Limits) *Fault {
	switch {
	case c.Priority != 0 && !lim.Priorities:
		return faultf("priority", "priority %d needs a server started with --scheduling-policy priority", c.Priority)
	case c.CacheSalt != nil && *c.CacheSalt == "":
		return faultf("cache_salt", "cache_salt must not be empty")
	case c.CacheSalt != nil && len(*c.CacheSalt) > maxCacheSalt:
		return faultf("cache_salt", "cache_salt has %d bytes; the limit is %d", len(*c.CacheSalt), maxCacheSalt)
	case c.CacheHitThreshold != nil && !(*c.CacheHitThreshold >= 0 && *c.CacheHitThreshold <= 1):
		return faultf("cache_hit_threshold", "cache_hit_threshold must be in [0, 1], got %v", *c.CacheHitThreshold)
	case given(c.KVTransferParams) && c.KVTransferParams.Kind() != '{':
		return faultf("kv_transfer_params", "kv_transfer_params must be an object, got %s", show(c.KVTransferParams))
	case c.TruncatePromptTokens != nil && *c.TruncatePromptTokens < -1:
		return faultf("truncate_prompt_tokens", "truncate_prompt_tokens must be -1 or at least 0, got %d", *c.TruncatePromptTokens)
	case c.TruncationSide != "" && c.TruncationSide != "left" && c.TruncationSide != "right":
		return faultf("truncation_side", "truncation_side must be left or right, got %q", c.TruncationSide)
	}
	return nil
}

// TransfersKV tells whether the request has kv_transfer_params.
func (c *Common) TransfersKV() bool {
	return given(c.KVTransferParams)
}

// Choices is the number of answers wanted a prompt, at least 1 in a valid request.
func (c *Common) Choices() int {
	if c.N == nil {
		return 1
	}
	return *c.N
}

// maxTokensFault checks a limit on the length of the answer. With echo, 0 asks for the prompt alone.
func maxTokensFault(param string, n *int, least int, echo bool) *Fault {
	switch {
	case n == nil:
		return nil
	case *n < 1 && !(echo && *n == 0):
		return faultf(param, "%s must be at least 1, got %d", param, *n)
	case least > *n && *n > 0:
		return faultf("min_tokens", "min_tokens must be at most %s, which is %d; got %d", param, *n, least)
	}
	return nil
}

// logprobsFault checks a number of alternatives a position.
func logprobsFault(param string, n *int, most int) *Fault {
	switch {
	case n == nil || *n == 0:
		return nil
	case *n < -1:
		return faultf(param, "%s must be at least 0, or -1 for all, got %d", param, *n)
	case most >= 0 && (*n > most || *n == -1):
		return faultf(param, "%s %d exceeds the server's limit of %d (--max-logprobs)", param, *n, most)
	}
	return nil
}

// tokenIDsFault checks that ids lie within the vocabulary.
func tokenIDsFault(param string, ids []int32, vocab int) *Fault {
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return faultf(fmt.Sprintf("%s.%d", param, i), "%s holds token %d; the vocabulary ends at %d", param, id, vocab-1)
		}
	}
	return nil
}
