package openai

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

var header = Header{ID: "cmpl-1", Model: "m", Created: time.Unix(1700000000, 0)}

func chatHeader() Header {
	h := header
	h.Kind, h.ID = Chat, "chatcmpl-1"
	return h
}

// TestResponses holds the order of members, and that members without a value are null.
func TestResponses(t *testing.T) {
	lp := []TokenLogprob{
		{Token: "a", Absent: true},
		{Token: "é", Bytes: []byte("é"), Logprob: -0.5, Offset: 1, Top: []TopLogprob{
			{Token: "é", Bytes: []byte("é"), Logprob: -0.5},
			{Token: "\ufffd", Bytes: []byte{0xc3}, Logprob: -1.25},
			{Token: "\ufffd", Bytes: []byte{0xc4}, Logprob: float32(math.Inf(-1))},
		}},
	}
	usage := Usage{PromptTokens: 5, CompletionTokens: 2, CachedTokens: 4}
	for _, tc := range []struct {
		name string
		got  []byte
		want string
	}{
		{
			"text", (&Response{Header: header, Usage: usage, Choices: []Choice{{Text: "a\"\n<é>", FinishReason: "length"}}}).Append(nil),
			`{"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m","choices":[{"index":0,"text":"a\"\n<é>",` +
				`"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null,"prompt_logprobs":null,` +
				`"prompt_token_ids":null}],"service_tier":null,"system_fingerprint":null,"usage":{"prompt_tokens":5,"total_tokens":7,` +
				`"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}},"kv_transfer_params":null}`,
		},
		{
			"text with everything", (&Response{Header: header, Choices: []Choice{{
				Index: 1, Text: "aé", Logprobs: lp, FinishReason: "stop", StopReason: StopReason{ByToken: true, Token: 0},
				TokenIDs: []int32{1, 2}, PromptTokenIDs: []int32{}, PromptLogprobs: PromptLogprobs{nil, {
					{ID: 7, Token: "x", Logprob: -2, Rank: 3}, {ID: 8, Token: "y", Logprob: -1, Rank: 1}, {ID: 7, Token: "x", Logprob: -2, Rank: 3},
				}},
			}}}).Append(nil),
			`{"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m","choices":[{"index":1,"text":"aé",` +
				`"logprobs":{"text_offset":[0,1],"token_logprobs":[null,-0.5],"tokens":["a","é"],"top_logprobs":[null,` +
				`{"é":-0.5,"` + "\ufffd" + `":-1.25}]},"finish_reason":"stop","stop_reason":0,"token_ids":[1,2],"prompt_logprobs":[null,` +
				`{"7":{"logprob":-2,"rank":3,"decoded_token":"x"},"8":{"logprob":-1,"rank":1,"decoded_token":"y"}}],"prompt_token_ids":[]}],` +
				`"service_tier":null,"system_fingerprint":null,"usage":{"prompt_tokens":0,"total_tokens":0,"completion_tokens":0,` +
				`"prompt_tokens_details":{"cached_tokens":0}},"kv_transfer_params":null}`,
		},
		{
			"chat", (&Response{Header: chatHeader(), Usage: usage, Choices: []Choice{{
				Text: "hi", Logprobs: lp[1:], FinishReason: "stop", StopReason: StopReason{Text: "END"},
			}}}).Append(nil),
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{` +
				`"role":"assistant","content":"hi","refusal":null,"annotations":null,"audio":null,"function_call":null,` +
				`"reasoning":null},"logprobs":{"content":[{"token":"é","logprob":-0.5,"bytes":[195,169],"top_logprobs":[` +
				`{"token":"é","logprob":-0.5,"bytes":[195,169]},{"token":"` + "\ufffd" + `","logprob":-1.25,"bytes":[195]},` +
				`{"token":"` + "\ufffd" + `","logprob":-9999,"bytes":[196]}]}]},"finish_reason":"stop","stop_reason":"END","token_ids":null}],` +
				`"service_tier":null,"system_fingerprint":null,"usage":{"prompt_tokens":5,"total_tokens":7,"completion_tokens":2,` +
				`"prompt_tokens_details":{"cached_tokens":4}},"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,` +
				`"kv_transfer_params":null}`,
		},
		{
			"error", (&Error{Message: "no", Type: "BadRequestError", Param: "n", Code: 400}).Append(nil),
			`{"error":{"message":"no","type":"BadRequestError","param":"n","code":400}}`,
		},
		{
			"models", AppendModels(nil, []ModelCard{{ID: "m", Created: header.Created, Root: "/m.gguf", MaxModelLen: 2048}}),
			`{"object":"list","data":[{"id":"m","object":"model","created":1700000000,"owned_by":"quire","root":"/m.gguf",` +
				`"parent":null,"max_model_len":2048,"permission":[{"id":"modelperm-62c66a7a5dd70c3146618063c344e531","object":"model_permission",` +
				`"created":1700000000,"allow_create_engine":false,"allow_sampling":true,"allow_logprobs":true,"allow_search_indices":false,` +
				`"allow_view":true,"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}]}`,
		},
	} {
		if diff := cmp.Diff(tc.want, string(tc.got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", tc.name, diff)
		}
		if !jsontext.Value(tc.got).IsValid() {
			t.Errorf("%s: not JSON: %s", tc.name, tc.got)
		}
	}
}

// TestFrames holds the frames of a stream, in order; members without a value are left out.
func TestFrames(t *testing.T) {
	const chat = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[`
	const text = `data: {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m","choices":[`
	c, f := NewFrames(chatHeader()), NewFrames(header)
	usage := &Usage{PromptTokens: 3, CompletionTokens: 1}
	const usageJSON = `"usage":{"prompt_tokens":3,"total_tokens":4,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0}}`
	for _, tc := range []struct {
		got  []byte
		want string
	}{
		{
			c.AppendDelta(nil, &Delta{Role: "assistant", PromptTokenIDs: []int32{1}}, nil),
			chat + `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":[1]}`,
		},
		{
			c.AppendDelta(nil, &Delta{Index: 12, Text: "é\n"}, usage),
			chat + `{"index":12,"delta":{"content":"é\n"},"logprobs":null,"finish_reason":null}],` + usageJSON + `}`,
		},
		{
			c.AppendDelta(nil, &Delta{FinishReason: "stop", StopReason: StopReason{Text: "X"}, TokenIDs: []int32{5}}, nil),
			chat + `{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":"X","token_ids":[5]}]}`,
		},
		{c.AppendUsage(nil, *usage), chat + `],` + usageJSON + `}`},
		{
			f.AppendDelta(nil, &Delta{Text: "hi", FinishReason: "length"}, nil),
			text + `{"index":0,"text":"hi","logprobs":null,"finish_reason":"length","stop_reason":null}]}`,
		},
		{
			AppendErrorFrame(nil, &Error{Message: "a\nb", Type: "InternalServerError", Code: 500}),
			`data: {"error":{"message":"a\nb","type":"InternalServerError","param":null,"code":500}}`,
		},
	} {
		if diff := cmp.Diff(tc.want+"\n\n", string(tc.got)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

// FuzzFrames holds that any text survives the way into a frame and back, and that a frame is one line of valid JSON.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{"", "a", "\x00\u2028\"\\</script>", "\xff\xfe", "\r\n\n\n", "👩‍👩‍👧"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		stream := NewFrames(chatHeader()).AppendDelta(nil, &Delta{Text: s}, nil)
		stream = append(stream, Done...)
		n := 0
		for data, err := range Events(bytes.NewReader(stream)) {
			if err != nil {
				t.Fatal(err)
			}
			reply, err := DecodeReply(data)
			if err != nil {
				t.Fatalf("%q: %v", data, err)
			}
			if got, want := reply.Choices[0].Delta.Content, strings.ToValidUTF8(s, "\ufffd"); !sameText(got, want) {
				t.Errorf("text %q came back as %q", s, got)
			}
			n++
		}
		if n != 1 {
			t.Errorf("%d events, want 1: %q", n, stream)
		}
	})
}

// sameText compares up to the number of replacement characters a run of bad bytes becomes.
func sameText(a, b string) bool {
	strip := func(s string) string { return strings.ReplaceAll(s, "\ufffd", "") }
	return strip(a) == strip(b)
}

func TestEventsUnfinished(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	stream := ": comment\n\nevent: e\ndata: a\r\n\r\ndata:" + long + "\n\n"
	var got []string
	var last error
	for data, err := range Events(strings.NewReader(stream)) {
		if err != nil {
			last = err
			break
		}
		got = append(got, string(data))
	}
	if diff := cmp.Diff([]string{"a", long}, got); diff != "" || last != io.ErrUnexpectedEOF {
		t.Errorf("error %v, want io.ErrUnexpectedEOF; -want +got\n%s", last, diff)
	}
}

func TestAppendDeltaDoesNotAllocate(t *testing.T) {
	frames, buf := NewFrames(chatHeader()), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { frames.AppendDelta(buf, &Delta{Text: "hello \"you\"\n"}, nil) }); n != 0 {
		t.Errorf("AppendDelta allocates %v times, want 0", n)
	}
}

// BenchmarkAppendDelta is what a stream writes each token.
func BenchmarkAppendDelta(b *testing.B) {
	frames, buf := NewFrames(chatHeader()), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		frames.AppendDelta(buf, &Delta{Text: " hello"}, nil)
	}
}
