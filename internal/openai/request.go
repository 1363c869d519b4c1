package openai

import "github.com/go-json-experiment/json/jsontext"

// Common holds what both kinds of completion accept. Pointers tell a field that was left out from one that is zero; left
// out, the server's or the model's own default holds. Fields that Quire ignores because they cannot change the answer
// (user, metadata, session_id, spaces_between_special_tokens …) are not listed.
type Common struct {
	Model string `json:"model"` // "" asks for the served model

	// What is sampled.
	N                 *int      `json:"n"`
	Temperature       *float64  `json:"temperature"`        // 0 … 2; 0 is greedy
	TopP              *float64  `json:"top_p"`              // above 0, at most 1
	TopK              *int      `json:"top_k"`              // 0 and -1 are off
	MinP              *float64  `json:"min_p"`              // 0 … 1
	FrequencyPenalty  *float64  `json:"frequency_penalty"`  // -2 … 2
	PresencePenalty   *float64  `json:"presence_penalty"`   // -2 … 2
	RepetitionPenalty *float64  `json:"repetition_penalty"` // above 0; 1 is off
	LogitBias         LogitBias `json:"logit_bias"`         // clamped to -100 … 100
	AllowedTokenIDs   []int32   `json:"allowed_token_ids"`  // nil allows all
	BadWords          Strings   `json:"bad_words"`
	Seed              *int64    `json:"seed"`

	// When the answer ends.
	MaxTokens    *int    `json:"max_tokens"`
	MinTokens    int     `json:"min_tokens"`
	Stop         Strings `json:"stop"`
	StopTokenIDs []int32 `json:"stop_token_ids"`
	IncludeStop  bool    `json:"include_stop_str_in_output"`
	IgnoreEOS    bool    `json:"ignore_eos"`

	// What the answer shows.
	Stream                 bool           `json:"stream"`
	StreamOptions          *StreamOptions `json:"stream_options"`
	StreamInterval         *int           `json:"stream_interval"` // tokens a frame
	Echo                   bool           `json:"echo"`
	SkipSpecialTokens      *bool          `json:"skip_special_tokens"` // true when left out
	PromptLogprobs         *int           `json:"prompt_logprobs"`
	ReturnTokenIDs         bool           `json:"return_token_ids"`
	ReturnTokensAsTokenIDs bool           `json:"return_tokens_as_token_ids"`
	ReturnPromptText       bool           `json:"return_prompt_text"`

	// How the prompt is read.
	AddSpecialTokens     *bool  `json:"add_special_tokens"`     // true for completions, false for chat when left out
	TruncatePromptTokens *int   `json:"truncate_prompt_tokens"` // -1 cuts to the context
	TruncationSide       string `json:"truncation_side"`        // left, the default, drops the beginning

	// How the request is served.
	Priority  int     `json:"priority"` // lower runs earlier
	RequestID string  `json:"request_id"`
	CacheSalt *string `json:"cache_salt"` // prefixes are shared only under equal salts
	// CacheHitThreshold, 0 … 1, is the share of the prompt that must be found in the cache for the request to run.
	CacheHitThreshold *float64       `json:"cache_hit_threshold"`
	KVTransferParams  jsontext.Value `json:"kv_transfer_params"` // an object; means nothing without a peer to transfer from

	refused
}

// StreamOptions says what a stream tells beside the text.
type StreamOptions struct {
	IncludeUsage         bool `json:"include_usage"`          // one more frame with the usage
	ContinuousUsageStats bool `json:"continuous_usage_stats"` // usage in every frame
}

// refused lists fields that ask for something Quire does not offer and that would change the answer. They are decoded
// only to be refused by name; null and the neutral value pass.
type refused struct {
	UseBeamSearch        bool           `json:"use_beam_search"`
	BestOf               *int           `json:"best_of"`
	ResponseFormat       jsontext.Value `json:"response_format"`
	StructuredOutputs    jsontext.Value `json:"structured_outputs"`
	GuidedJSON           jsontext.Value `json:"guided_json"`
	GuidedRegex          jsontext.Value `json:"guided_regex"`
	GuidedChoice         jsontext.Value `json:"guided_choice"`
	GuidedGrammar        jsontext.Value `json:"guided_grammar"`
	RepetitionDetection  jsontext.Value `json:"repetition_detection"`
	ThinkingTokenBudget  jsontext.Value `json:"thinking_token_budget"`
	LogprobTokenIDs      jsontext.Value `json:"logprob_token_ids"`
	Watermarking         jsontext.Value `json:"watermarking"`
	LogitsProcessors     jsontext.Value `json:"logits_processors"`
	MultimodalProcessing jsontext.Value `json:"mm_processor_kwargs"`
}

// CompletionRequest is the body of POST /v1/completions.
type CompletionRequest struct {
	Common
	Prompt       Prompt         `json:"prompt"`
	Suffix       string         `json:"suffix"`
	Logprobs     *int           `json:"logprobs"`
	PromptEmbeds jsontext.Value `json:"prompt_embeds"`
}

// ChatRequest is the body of POST /v1/chat/completions.
type ChatRequest struct {
	Common
	Messages             []Message      `json:"messages"`
	MaxCompletionTokens  *int           `json:"max_completion_tokens"` // wins over max_tokens
	Logprobs             bool           `json:"logprobs"`
	TopLogprobs          *int           `json:"top_logprobs"`
	Tools                jsontext.Value `json:"tools"`
	ToolChoice           jsontext.Value `json:"tool_choice"`
	ReasoningEffort      *string        `json:"reasoning_effort"`
	AddGenerationPrompt  *bool          `json:"add_generation_prompt"` // true when left out
	ContinueFinalMessage bool           `json:"continue_final_message"`
	Documents            jsontext.Value `json:"documents"`
	ChatTemplate         *string        `json:"chat_template"`
	ChatTemplateKwargs   jsontext.Value `json:"chat_template_kwargs"`
}

// TokenizeRequest is the body of POST /tokenize: a prompt, or messages as in a ChatRequest.
type TokenizeRequest struct {
	Model                string         `json:"model"`
	Prompt               *string        `json:"prompt"`
	Messages             []Message      `json:"messages"`
	AddSpecialTokens     *bool          `json:"add_special_tokens"`
	ReturnTokenStrs      bool           `json:"return_token_strs"`
	AddGenerationPrompt  *bool          `json:"add_generation_prompt"`
	ContinueFinalMessage bool           `json:"continue_final_message"`
	Tools                jsontext.Value `json:"tools"`
	ChatTemplateKwargs   jsontext.Value `json:"chat_template_kwargs"`
}

// DetokenizeRequest is the body of POST /detokenize.
type DetokenizeRequest struct {
	Model  string  `json:"model"`
	Tokens []int32 `json:"tokens"`
}
