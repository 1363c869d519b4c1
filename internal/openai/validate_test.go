package openai

import "testing"

// TestValidateCompletion holds the rules that vLLM's clients meet, each with its field and numbers.
func TestValidateCompletion(t *testing.T) {
	for _, tc := range []struct{ fields, param, message string }{
		{`"prompt":"a"`, "", ""},
		{`"prompt":"a","max_tokens":0,"echo":true`, "", ""},
		{`"prompt":"a","response_format":{"type":"text"},"best_of":1,"top_k":-1,"structured_outputs":null`, "", ""},
		{`"model":"m"`, "prompt", "prompt is empty: give a string, token ids or a list of them"},
		{`"prompt":""`, "prompt", "prompt is empty"},
		{`"prompt":["a",""]`, "prompt.1", "prompt is empty"},
		{`"prompt":[]`, "prompt", "prompt is empty: give a string, token ids or a list of them"},
		{`"prompt":[[]]`, "prompt", "prompt is empty"},
		{`"prompt":[1,100]`, "prompt.1", "prompt holds token 100; the vocabulary ends at 99"},
		{`"prompt":[[1],[-1]]`, "prompt.1.0", "prompt.1 holds token -1; the vocabulary ends at 99"},
		{`"prompt":"a","suffix":"b"`, "suffix", "suffix is not supported by this server"},
		{`"prompt":"a","prompt_embeds":"b"`, "prompt_embeds", "prompt_embeds is not supported by this server"},
		{`"prompt":"a","max_tokens":0`, "max_tokens", "max_tokens must be at least 1, got 0"},
		{`"prompt":"a","max_tokens":3,"min_tokens":5`, "min_tokens", "min_tokens must be at most max_tokens, which is 3; got 5"},
		{`"prompt":"a","logprobs":21`, "logprobs", "logprobs 21 exceeds the server's limit of 20 (--max-logprobs)"},
		{`"prompt":"a","logprobs":-1`, "logprobs", "logprobs -1 exceeds the server's limit of 20 (--max-logprobs)"},
		{`"prompt":"a","logprobs":-2`, "logprobs", "logprobs must be at least 0, or -1 for all, got -2"},
		{`"prompt":"a","n":0`, "n", "n must be in [1, 128], got 0"},
		{`"prompt":"a","n":129`, "n", "n must be in [1, 128], got 129"},
		{`"prompt":"a","top_k":-2`, "top_k", "top_k must be 0 (off) or at least 1, got -2"},
		{`"prompt":"a","allowed_token_ids":[]`, "allowed_token_ids", "allowed_token_ids is empty: no token could be sampled"},
		{`"prompt":"a","stop":["a",""]`, "stop.1", "stop must not hold an empty string"},
		{`"prompt":"a","stream_options":{"include_usage":true}`, "stream_options", "stream_options needs stream to be true"},
		{`"prompt":"a","stream":true,"prompt_logprobs":1`, "prompt_logprobs", "prompt_logprobs is not available with stream"},
		{`"prompt":"a","stream_interval":0`, "stream_interval", "stream_interval must be at least 1, got 0"},
		{`"prompt":"a","priority":1`, "priority", "priority 1 needs a server started with --scheduling-policy priority"},
		{`"prompt":"a","cache_salt":""`, "cache_salt", "cache_salt must not be empty"},
		{
			`"prompt":"a","truncate_prompt_tokens":-2`, "truncate_prompt_tokens",
			"truncate_prompt_tokens must be -1 or at least 0, got -2",
		},
		{`"prompt":"a","truncation_side":"up"`, "truncation_side", `truncation_side must be left or right, got "up"`},
		{`"prompt":"a","use_beam_search":true`, "use_beam_search", "use_beam_search is not supported by this server"},
		{`"prompt":"a","best_of":4,"n":2`, "best_of", "best_of 4 is not supported: it must equal n, which is 2"},
		{`"prompt":"a","guided_json":{}`, "guided_json", "guided_json is not supported by this server"},
		{`"prompt":"a","structured_outputs":{"regex":"a"}`, "structured_outputs", "structured_outputs is not supported by this server"},
		{
			`"prompt":"a","response_format":{"type":"json_schema"}`, "response_format.type",
			`response_format "json_schema" is not supported: this server writes "text" only`,
		},
		{`"prompt":"a","response_format":{"type":5}`, "response_format.type", "response_format.type must be a string, got a number"},
	} {
		var r CompletionRequest
		if err := Decode([]byte("{"+tc.fields+"}"), &r); err != nil {
			t.Errorf("Decode({%s}): %v", tc.fields, err)
			continue
		}
		compareFault(t, tc.fields, r.Validate(Limits{MaxLogprobs: 20, VocabSize: 100}), tc.param, tc.message)
	}
}

func TestValidateChat(t *testing.T) {
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	const tools = `"tools":[{"type":"function"}]`
	for _, tc := range []struct{ fields, param, message string }{
		{messages, "", ""},
		{messages + `,"logprobs":true,"top_logprobs":20,"tool_choice":"none"`, "", ""},
		{messages + `,` + tools + `,"tool_choice":"none"`, "", ""},
		{messages + `,"max_tokens":0,"max_completion_tokens":4`, "", ""},
		{`"messages":[]`, "messages", "messages is empty: give at least one message"},
		{messages + `,"tools":[]`, "tools", "tools is empty: leave it out or name a tool"},
		{messages + `,"tools":{}`, "tools", "tools must be a list, got an object"},
		{messages + `,"tool_choice":"auto"`, "tool_choice", "tool_choice needs tools"},
		{
			messages + `,` + tools, "tools",
			`tools are supported only with tool_choice "none": this server does not parse tool calls`,
		},
		{
			messages + `,` + tools + `,"tool_choice":"required"`, "tools",
			`tools are supported only with tool_choice "none": this server does not parse tool calls`,
		},
		{
			messages + `,"chat_template":"x"`, "chat_template",
			"chat_template is not accepted in requests; the server's --chat-template sets it",
		},
		{
			messages + `,"continue_final_message":true`, "continue_final_message",
			"continue_final_message needs add_generation_prompt to be false",
		},
		{messages + `,"top_logprobs":2`, "top_logprobs", "top_logprobs needs logprobs to be true"},
		{
			messages + `,"logprobs":true,"top_logprobs":21`, "top_logprobs",
			"top_logprobs 21 exceeds the server's limit of 20 (--max-logprobs)",
		},
		{messages + `,"max_completion_tokens":0`, "max_completion_tokens", "max_completion_tokens must be at least 1, got 0"},
		{messages + `,"chat_template_kwargs":[]`, "chat_template_kwargs", "chat_template_kwargs must be an object, got a list"},
	} {
		var r ChatRequest
		if err := Decode([]byte("{"+tc.fields+"}"), &r); err != nil {
			t.Errorf("Decode({%s}): %v", tc.fields, err)
			continue
		}
		compareFault(t, tc.fields, r.Validate(Limits{MaxLogprobs: 20, VocabSize: 100}), tc.param, tc.message)
	}
}

func compareFault(t *testing.T, fields string, got *Fault, param, message string) {
	t.Helper()
	if got == nil {
		got = &Fault{}
	}
	if got.Param != param || got.Message != message {
		t.Errorf("Validate({%s})\n got %q %q\nwant %q %q", fields, got.Param, got.Message, param, message)
	}
}
