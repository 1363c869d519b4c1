package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeServer answers requests without a network: after first it sends a token, then one every gap, each its own frame.
// It runs in the fake time of a synctest bubble, so that all times below are exact.
type fakeServer struct {
	first, gap time.Duration

	// fault, if not nil, answers instead when it returns a response.
	fault func(body map[string]any) *http.Response

	mu     sync.Mutex
	bodies []map[string]any
}

func (s *fakeServer) RoundTrip(req *http.Request) (*http.Response, error) {
	var body map[string]any
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	s.mu.Unlock()
	if s.fault != nil {
		if resp := s.fault(body); resp != nil {
			return resp, nil
		}
	}
	chat := strings.HasSuffix(req.URL.Path, "/chat/completions")
	n := 0
	for _, key := range []string{"max_tokens", "max_completion_tokens"} {
		if v, ok := body[key].(float64); ok {
			n = int(v)
		}
	}
	r, w := io.Pipe()
	go func() {
		ctx := req.Context()
		if chat {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`+"\n\n")
		}
		for i := range n {
			wait := s.gap
			if i == 0 {
				wait = s.first
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				w.CloseWithError(ctx.Err())
				return
			}
			frame := `data: {"choices":[{"index":0,"text":"x"}]}`
			if chat {
				frame = `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}`
			}
			fmt.Fprint(w, frame+"\n\n")
		}
		fmt.Fprint(w, `data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}`+"\n\n")
		fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":%d}}`+"\n\ndata: [DONE]\n\n", n)
		w.Close()
	}()
	return &http.Response{StatusCode: 200, Status: "200 OK", Body: r, Header: http.Header{}}, nil
}

func (s *fakeServer) target() *Target {
	return &Target{Client: &http.Client{Transport: s}, BaseURL: "http://fake/", Backend: Completions, Model: "m"}
}

func answer(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)),
		Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{},
	}
}

func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{first: 100 * time.Millisecond, gap: 20 * time.Millisecond}
		for _, backend := range []Backend{Completions, Chat} {
			target := server.target()
			target.Backend = backend
			target.Extra = map[string]any{"top_k": 1}
			r := target.Send(t.Context(), &Request{Prompt: "p", OutputTokens: 4, IgnoreEOS: true})
			want := &Record{
				Status: 200, PromptTokens: 7, OutputTokens: 4, FinishReason: "length", Text: "xxxx", Done: true,
				Start: r.Start, TTFT: 100 * time.Millisecond, Latency: 160 * time.Millisecond,
				ITL: []time.Duration{20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond},
			}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("%s −want +got:\n%s", backend, diff)
			}
			if r.TPOT() != 20*time.Millisecond {
				t.Errorf("TPOT %v", r.TPOT())
			}
		}
		want := []map[string]any{
			{
				"model": "m", "prompt": "p", "max_tokens": 4.0, "temperature": 0.0, "stream": true, "ignore_eos": true, "top_k": 1.0,
				"stream_options": map[string]any{"include_usage": true},
			},
			{
				"model": "m", "messages": []any{map[string]any{"role": "user", "content": "p"}}, "max_completion_tokens": 4.0,
				"temperature": 0.0, "stream": true, "ignore_eos": true, "top_k": 1.0,
				"stream_options": map[string]any{"include_usage": true},
			},
		}
		if diff := cmp.Diff(want, server.bodies); diff != "" {
			t.Errorf("bodies −want +got:\n%s", diff)
		}
	})
}

// TestSendFaults is what can go wrong with an answer: each is an error that says what.
func TestSendFaults(t *testing.T) {
	for _, c := range []struct {
		name, want string
		resp       *http.Response
		noStream   bool
	}{
		{"refused", "400 Bad Request: too long", answer(400, `{"error":{"message":"too long"}}`), false},
		{"refused without JSON", "503 Service Unavailable: busy", answer(503, " busy\n"), false},
		{"broken off", "stream broken off after 1 frames: unexpected EOF", answer(200, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"), false},
		{"no reason", "stream ended without a finish_reason", answer(200, "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n"), false},
		{"error in the stream", "server error: oom", answer(200, "data: {\"error\":{\"message\":\"oom\"}}\n\ndata: [DONE]\n\n"), false},
		{"not JSON", "frame 0 is not JSON", answer(200, "data: hello\n\n"), false},
		{"whole answer not JSON", "answer is not JSON", answer(200, "hello"), true},
	} {
		server := &fakeServer{fault: func(map[string]any) *http.Response { return c.resp }}
		r := server.target().Send(t.Context(), &Request{Prompt: "p", OutputTokens: 1, NoStream: c.noStream})
		if r.Err == nil || !strings.Contains(r.Err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, r.Err, c.want)
		}
		if r.Done != (c.name == "no reason") {
			t.Errorf("%s: done %t", c.name, r.Done)
		}
	}
}

func TestSendWhole(t *testing.T) {
	body := `{"choices":[{"text":"abc","finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`
	server := &fakeServer{fault: func(map[string]any) *http.Response { return answer(200, body) }}
	r := server.target().Send(t.Context(), &Request{Prompt: "p", OutputTokens: 5, NoStream: true})
	if r.Err != nil || !r.Done || r.Text != "abc" || r.FinishReason != "stop" || r.OutputTokens != 2 || r.PromptTokens != 3 {
		t.Errorf("record %+v", r)
	}
}

// TestClosedLoop has two clients for six requests of one second each: three seconds.
func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{first: 900 * time.Millisecond, gap: 100 * time.Millisecond}
		load := &Load{Target: server.target(), Items: slices.Repeat([]Item{{"p", 2}}, 6), MaxConcurrency: 2, Warmups: 2}
		finished := 0
		var mu sync.Mutex
		load.Finished = func(*Record) { mu.Lock(); finished++; mu.Unlock() }
		results, err := load.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := results.Summarize([]Goal{{TTFT, 900}, {E2EL, 1000}})
		if s.Duration != 3*time.Second || s.Completed != 6 || s.Good != 6 || s.PeakConcurrency != 2 || finished != 6 {
			t.Errorf("%d finished, summary %+v", finished, s)
		}
		if s.InputTokens != 42 || s.OutputTokens != 12 || s.PeakTokensPerSecond != 4 {
			t.Errorf("tokens: %+v", s)
		}
		if len(server.bodies) != 8 {
			t.Errorf("%d requests, want 2 to warm up and 6", len(server.bodies))
		}
	})
}

// TestOpenLoop sends at a rate however slow the answers are.
func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{first: 100 * time.Second}
		load := &Load{Target: server.target(), Items: slices.Repeat([]Item{{"p", 1}}, 20), Rate: 4, Burstiness: 1, Seed: 3}
		results, err := load.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last := results.Records[19].Start.Sub(results.Start)
		if last != 5*time.Second || results.Summarize(nil).PeakConcurrency != 20 {
			t.Errorf("last sent after %v, summary %+v", last, results.Summarize(nil))
		}
	})
}

// TestInterrupt ends a run early: what was answered is reported, what was not is neither success nor failure.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{first: time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		load := &Load{Target: server.target(), Items: slices.Repeat([]Item{{"p", 1}}, 5), MaxConcurrency: 1}
		results, err := load.Run(ctx)
		if err != nil {
			t.Fatal(err)
		}
		s := results.Summarize(nil)
		if !results.Interrupted || s.Completed != 2 || s.Failed != 0 || s.Unsent != 3 {
			t.Errorf("interrupted %t, summary %+v", results.Interrupted, s)
		}
	})
}

func TestFailuresAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		server := &fakeServer{first: time.Second, fault: func(map[string]any) *http.Response {
			if n++; n%3 == 0 {
				return answer(500, "broken")
			}
			return nil
		}}
		load := &Load{Target: server.target(), Items: slices.Repeat([]Item{{"p", 1}}, 6), MaxConcurrency: 1}
		results, err := load.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s := results.Summarize(nil); s.Completed != 4 || s.Failed != 2 || results.FirstError() == nil {
			t.Errorf("summary %+v, first error %v", s, results.FirstError())
		}
		load.Warmups = 4
		if _, err := load.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "warm-up: 500") {
			t.Errorf("failing warm-up: %v", err)
		}
	})
}

// TestWaitReady asks again while the server is starting, and gives up at once where waiting does not help.
func TestWaitReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		server := &fakeServer{fault: func(map[string]any) *http.Response {
			if time.Since(start) < 3*time.Second {
				return answer(503, `{"error":{"message":"Loading model"}}`)
			}
			return nil
		}}
		load := &Load{Target: server.target(), Items: []Item{{"p", 1}}}
		if r, err := load.WaitReady(t.Context(), time.Minute); err != nil || r.Text != "x" || time.Since(start) != 3*time.Second {
			t.Errorf("ready after %v: %v, %v", time.Since(start), r, err)
		}
		start = time.Now()
		if _, err := load.WaitReady(t.Context(), 2*time.Second); err == nil || !strings.Contains(err.Error(), "not ready after 2s: 503") {
			t.Errorf("never ready: %v", err)
		}
		ctx, interrupt := context.WithCancelCause(t.Context())
		interrupt(io.ErrClosedPipe)
		if _, err := load.WaitReady(ctx, time.Hour); err != io.ErrClosedPipe {
			t.Errorf("interrupted, which is not a server that is late: %v", err)
		}
		server.fault = func(map[string]any) *http.Response { return answer(404, "no such model") }
		if _, err := load.WaitReady(t.Context(), time.Hour); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("unknown model: %v", err)
		}
	})
}

func TestArrivals(t *testing.T) {
	const n, rate = 20000, 50.0
	for _, burstiness := range []float64{0.2, 1, 4} {
		at := arrivals(rand.New(rand.NewPCG(1, 0)), n, rate, burstiness)
		if !slices.IsSorted(at) {
			t.Fatalf("burstiness %v: not in order", burstiness)
		}
		if got, want := at[n-1].Seconds(), n/rate; math.Abs(got-want) > 1e-6 {
			t.Errorf("burstiness %v: last after %v s, want %v", burstiness, got, want)
		}
		var gaps []float64
		for i := 1; i < n; i++ {
			gaps = append(gaps, (at[i] - at[i-1]).Seconds())
		}
		// The coefficient of variation of a Gamma distribution is 1/√shape; 20,000 draws bring it within 3 %.
		if got, want := deviation(gaps)/mean(gaps), 1/math.Sqrt(burstiness); math.Abs(got/want-1) > 0.03 {
			t.Errorf("burstiness %v: gaps vary by %.3f, want %.3f", burstiness, got, want)
		}
	}
	for _, at := range arrivals(rand.New(rand.NewPCG(1, 0)), 3, math.Inf(1), 1) {
		if at != 0 {
			t.Errorf("without a rate: sent after %v", at)
		}
	}
}

// TestResultJSON has the members that scripts for vllm bench serve read, in their order and units.
func TestResultJSON(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	results := &Results{Start: start, Duration: 2 * time.Second, Records: []*Record{
		{
			Status: 200, PromptTokens: 10, OutputTokens: 3, Text: "a", Start: start, TTFT: 500 * time.Millisecond,
			ITL: []time.Duration{100 * time.Millisecond, 200 * time.Millisecond}, Latency: 800 * time.Millisecond,
		},
		{Status: 500, Start: start.Add(time.Second), Err: io.ErrUnexpectedEOF},
		nil,
	}}
	sel := Selection{Metrics: []Metric{TTFT, ITL}, Percentiles: []float64{50, 99.9}, Goals: []Goal{{TTFT, 400}}, Detailed: true}
	var b bytes.Buffer
	d := Description{
		Date: start, Backend: Completions, Model: "m", NumPrompts: 3, Rate: math.Inf(1), Burstiness: 1,
		Metadata: map[string]string{"commit": "abc"},
	}
	if err := WriteJSON(&b, d, results, results.Summarize(sel.Goals), sel); err != nil {
		t.Fatal(err)
	}
	const want = `{"date": "20261130-120000", "endpoint_type": "openai", "backend": "openai", "label": "openai", "model_id": "m", ` +
		`"tokenizer_id": "m", "num_prompts": 3, "request_rate": "inf", "burstiness": 1, "max_concurrency": null, "commit": "abc", ` +
		`"duration": 2, "completed": 1, "failed": 1, "total_input_tokens": 10, "total_output_tokens": 3, "request_throughput": 0.5, ` +
		`"request_goodput": 0, "output_throughput": 1.5, "total_token_throughput": 6.5, "max_output_tokens_per_s": 3, ` +
		`"max_concurrent_requests": 1, "mean_ttft_ms": 500, "median_ttft_ms": 500, "std_ttft_ms": 0, "p50_ttft_ms": 500, ` +
		`"p99.9_ttft_ms": 500, "mean_itl_ms": 150, "median_itl_ms": 150, "std_itl_ms": 50, "p50_itl_ms": 150, "p99.9_itl_ms": 199.9, ` +
		`"input_lens": [10,0,0], "output_lens": [3,0,0], "ttfts": [0.5,0,0], "itls": [[0.1,0.2],[],[]], "start_times": [0,1,0], ` +
		`"generated_texts": ["a","",""], "errors": ["","unexpected EOF","not sent or not finished: the run was interrupted"]}` + "\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("−want +got:\n%s", diff)
	}
}

func TestParseGoal(t *testing.T) {
	if g, err := ParseGoal("tpot:12.5"); err != nil || g != (Goal{TPOT, 12.5}) {
		t.Errorf("tpot:12.5 = %v, %v", g, err)
	}
	for _, bad := range []string{"", "ttft", "ttft:", "ttft:x", "ttft:-1", "itl:5", "speed:5"} {
		if _, err := ParseGoal(bad); err == nil {
			t.Errorf("goal %q accepted", bad)
		}
	}
}
