package openai

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestDecodeFaults holds that a body which cannot be decoded is answered with the field's path and what is wrong.
func TestDecodeFaults(t *testing.T) {
	for _, tc := range []struct{ body, param, message string }{
		{``, "", "the body is not JSON: it ends too early, at byte 0"},
		{`{`, "", "the body is not JSON: it ends too early, at byte 1"},
		{`{"prompt":"a`, "", "the body is not JSON: it ends too early, at byte 12"},
		{`[]`, "", "the body must be an object, got a list"},
		{`{"n":1} x`, "", "the body is not JSON: invalid character 'x' after top-level value at byte 8"},
		{`{"n":}`, "n", "the body is not JSON: invalid character '}' at start of value at byte 5 (n)"},
		{`{"n":1,"n":2}`, "n", "the body is not JSON: duplicate object member name at byte 7 (n)"},
		{`{"x":{"n":1,"n":1}}`, "x.n", "the body is not JSON: duplicate object member name at byte 12 (x.n)"},
		{"{\"prompt\":\"a\xff\"}", "prompt", "the body is not JSON: invalid UTF-8 at byte 12 (prompt)"},
		{`{"n":"5"}`, "n", `n must be an integer, got "5"`},
		{`{"n":1.5}`, "n", "n must be an integer, got 1.5"},
		{`{"n":1e400}`, "n", "n must be an integer of at most 64 bits, got 1e400"},
		{`{"n":99999999999999999999}`, "n", "n must be an integer of at most 64 bits, got 99999999999999999999"},
		{`{"temperature":1e999}`, "temperature", "temperature must be a number, got 1e999"},
		{`{"temperature":"hot"}`, "temperature", "temperature must be a number, got a string"},
		{`{"stream":1}`, "stream", "stream must be true or false, got a number"},
		{`{"stop":5}`, "stop", "stop must be a string or a list of strings, got 5"},
		{`{"stop":["a",1]}`, "stop.1", "stop.1 must be a string, got a number"},
		{
			`{"prompt":{}}`, "prompt",
			"prompt must be a string, a list of strings, a list of token ids or a list of lists of token ids, got an object",
		},
		{`{"prompt":[{}]}`, "prompt.0", "prompt.0 must be a string, a token id or a list of token ids, got an object"},
		{`{"prompt":[1,"a"]}`, "prompt.1", `prompt.1 must be a token id, got "a"`},
		{`{"prompt":["a",1]}`, "prompt.1", "prompt.1 must be a string like the first element, got 1"},
		{`{"prompt":[[1],[2,null]]}`, "prompt.1.1", "prompt.1.1 must be a token id, got null"},
		{`{"prompt":[1,99999999999]}`, "prompt.1", "prompt.1 must be an integer of at most 32 bits, got 99999999999"},
		{`{"logit_bias":{"x":1}}`, "logit_bias.x", `logit_bias.x must be a token id written as a string, got "x"`},
		{`{"logit_bias":{"7":[]}}`, "logit_bias.7", "logit_bias.7 must be a number, got a list"},
		{`{"messages":5}`, "messages", "messages must be a list, got a number"},
		{`{"messages":[5]}`, "messages.0", "messages.0 must be an object with role and content, got 5"},
		{`{"messages":[{}]}`, "messages.0.role", "messages.0.role must be a role such as user or assistant, got none"},
		{`{"messages":[{"role":7}]}`, "messages.0.role", "messages.0.role must be a string, got a number"},
		{
			`{"messages":[{"role":"u","content":7}]}`, "messages.0.content",
			"messages.0.content must be a string or a list of text parts, got 7",
		},
		{
			`{"messages":[{"role":"u","content":[{"type":"image_url"}]}]}`, "messages.0.content.0.type",
			`messages.0.content.0.type must be "text", all that this server reads, got "image_url"`,
		},
		{
			`{"messages":[{"role":"u","content":[{"type":"text"}]}]}`, "messages.0.content.0.text",
			"messages.0.content.0.text must be a string, got none",
		},
	} {
		var r struct {
			ChatRequest
			Prompt Prompt `json:"prompt"`
		}
		fault, _ := errors.AsType[*Fault](Decode([]byte(tc.body), &r))
		if fault == nil {
			t.Errorf("Decode(%s) gave no fault, want %q", tc.body, tc.message)
			continue
		}
		if fault.Param != tc.param || fault.Message != tc.message || !fault.Body {
			t.Errorf("Decode(%s)\n got %q %q\nwant %q %q", tc.body, fault.Param, fault.Message, tc.param, tc.message)
		}
	}
}

// TestDecodeAccepts holds the leniences: unknown fields, integers written as floats, null for "left out".
func TestDecodeAccepts(t *testing.T) {
	var r CompletionRequest
	body := `{"prompt":[[1,2],[3]],"max_tokens":16.0,"n":null,"stop":"END","logit_bias":{"5":-100},"seed":-1,"stream":null,
		"metadata":{"user":[1,2]},"user":"someone","Temperature":9}`
	if err := Decode([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	want := CompletionRequest{
		Common: Common{MaxTokens: new(16), Stop: Strings{"END"}, LogitBias: LogitBias{5: -100}, Seed: new(int64(-1))},
		Prompt: Prompt{Tokens: [][]int32{{1, 2}, {3}}},
	}
	if diff := cmp.Diff(want, r, cmp.AllowUnexported(Common{})); diff != "" {
		t.Errorf("Decode: -want +got\n%s", diff)
	}
}

func TestDecodePrompt(t *testing.T) {
	for body, want := range map[string]Prompt{
		`"a"`:         {Texts: []string{"a"}},
		`["a", "b"]`:  {Texts: []string{"a", "b"}},
		`[1, 2]`:      {Tokens: [][]int32{{1, 2}}},
		`[[1], []]`:   {Tokens: [][]int32{{1}, {}}},
		`[]`:          {},
		`null`:        {},
		`[ "\u00e9"]`: {Texts: []string{"é"}},
	} {
		var got Prompt
		if err := Decode([]byte(body), &got); err != nil {
			t.Errorf("Decode(%s): %v", body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Decode(%s): -want +got\n%s", body, diff)
		}
	}
}

func TestDecodeMessage(t *testing.T) {
	var m []Message
	body := `[{"role":"user","content":"hi"},{"role":"user","content":["a",{"type":"text","text":"b"}],"name":"N"},
		{"role":"assistant","content":null,"tool_calls":[]}]`
	if err := Decode([]byte(body), &m); err != nil {
		t.Fatal(err)
	}
	want := []Message{
		{Role: "user", Content: new("hi")}, {Role: "user", Content: new("a\nb")}, {Role: "assistant"},
	}
	for i := range m {
		if m[i].Raw.Kind() != '{' {
			t.Errorf("message %d: raw %q is no object", i, m[i].Raw)
		}
		m[i].Raw = nil
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// FuzzDecode holds that any body gives a request or a Fault that can be written as JSON, and never a panic.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"n":2}`, `{"prompt":[[1,2]],"logit_bias":{"1":2}}`,
		`{"prompt":"\ud800"}`, `[[[[`, `{"stop":["a",{}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var r struct {
			ChatRequest
			Prompt Prompt `json:"prompt"`
		}
		err := Decode(body, &r)
		if err == nil {
			r.Validate(Limits{MaxLogprobs: 20, VocabSize: 100})
			return
		}
		fault, ok := errors.AsType[*Fault](err)
		if !ok {
			t.Fatalf("Decode(%q) = %T, want *Fault", body, err)
		}
		wire := (&Error{Message: fault.Message, Param: fault.Param}).Append(nil)
		if !utf8.Valid(wire) || strings.ContainsRune(string(wire), '\n') {
			t.Errorf("Decode(%q): error %q is not one line of UTF-8", body, wire)
		}
	})
}

// BenchmarkDecodeChat stands for a long conversation, 170 kB of text in 100 messages.
func BenchmarkDecodeChat(b *testing.B) {
	message := `{"role":"user","content":"` + strings.Repeat("words and more words ", 80) + `"}`
	body := []byte(`{"messages":[` + message + strings.Repeat(","+message, 99) + `]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var r ChatRequest
		if err := Decode(body, &r); err != nil {
			b.Fatal(err)
		}
	}
}
