package server

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/internal/openai"
	"github.com/quire-ai/quire/sched"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate holds every step until it is opened, and can let single steps pass.
type gate chan struct{}

func (g gate) step(*sched.Plan) error { <-g; return nil }

// answerOf joins the text of an answer, streamed or not, and its finish reason.
func answerOf(t testing.TB, body string) (text, finish string) {
	t.Helper()
	if !strings.HasPrefix(body, "data: ") {
		r, err := openai.DecodeReply([]byte(body))
		if err != nil || len(r.Choices) != 1 {
			t.Fatalf("answer %s: %v", body, err)
		}
		return r.Choices[0].Text, r.Choices[0].FinishReason
	}
	for data, err := range openai.Events(strings.NewReader(body)) {
		if err != nil {
			t.Fatalf("stream %q: %v", body, err)
		}
		r, err := openai.DecodeReply(data)
		if err != nil || r.Error != nil {
			t.Fatalf("frame %s: %v", data, err)
		}
		for _, c := range r.Choices {
			if finish != "" {
				t.Fatalf("a frame after the last: %s", data)
			}
			text += c.Text
			finish = c.FinishReason
		}
	}
	return text, finish
}

// TestBothModesAgree holds, for scripts of tokens that once broke other engines, that a stream and a whole answer have the
// same text, the right one. docs/bug-reports.md, rows 6 (stop strings that leak, or hold text back) and 8 (bytes lost at the end).
func TestBothModesAgree(t *testing.T) {
	eos := newTokenizer(t).EOS()
	euro := []int32{0xe2, 0x82, 0xac}
	for _, tc := range []struct {
		name   string
		script any // []string of pieces, or []int32
		extra  string
		text   string
		finish string
	}{
		{"bug 6, vllm#3574: a stop string over three tokens", []string{"AB", "C", "D E", "F"}, `,"stop":"CD E"`, "AB", "stop"},
		{"bug 6: a near miss is delivered whole", []string{"AB", "C", "D E", "F", eosPiece}, `,"stop":"CD X"`, "ABCD EF", "stop"},
		{"bug 6: a stop string that overlaps itself", []string{"C", "CD", "F", eosPiece}, `,"stop":"CDF"`, "C", "stop"},
		{"bug 6: the beginning of a stop string at the end", []string{"AB", "C", eosPiece}, `,"stop":"CD"`, "ABC", "stop"},
		{"bug 6: the same at max_tokens", []string{"AB", "C", "F"}, `,"stop":"CD","max_tokens":2`, "ABC", "length"},
		{"bug 6: min_tokens goes before stop strings", []string{"C", "D E", "F", "C", eosPiece}, `,"stop":"C","min_tokens":2`, "CD EF", "stop"},
		{"bug 8, qwisp PR#134: a character of three tokens", append(euro, eos), "", "€", "stop"},
		{"bug 8: the end comes within a character", append(append([]int32{'a'}, euro[:2]...), eos), "", "a\ufffd", "stop"},
		{"bug 8: max_tokens comes within a character", append([]int32{'a'}, euro...), `,"max_tokens":3`, "a\ufffd", "length"},
		{"bug 8: a stop string after half a character", []int32{0xe2, 'C'}, `,"stop":"C"`, "\ufffd", "stop"},
		{"a byte that begins no character", []int32{0xff, 'a', eos}, "", "\ufffda", "stop"},
		{"the end at once", []string{eosPiece}, "", "", "stop"},
		{"ignore_eos shows nothing of it", []string{"AB", eosPiece, "C"}, `,"ignore_eos":true,"max_tokens":3`, "ABC", "length"},
		{
			"special tokens can be shown",
			[]string{"AB", eosPiece, "C"},
			`,"ignore_eos":true,"max_tokens":3,"skip_special_tokens":false`,
			"AB<|im_end|>C", "length",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, setup{})
			switch s := tc.script.(type) {
			case []string:
				f.play(s...)
			case []int32:
				f.script.Store(&s)
			}
			for _, mode := range []string{"", `,"stream":true`, `,"stream":true,"stream_interval":3`} {
				rec := f.do("POST", "/v1/completions", `{"prompt":"x"`+tc.extra+mode+`}`)
				text, finish := answerOf(t, rec.Body.String())
				if text != tc.text || finish != tc.finish {
					t.Errorf("%s: %q %s, want %q %s", mode, text, finish, tc.text, tc.finish)
				}
			}
			f.idle()
		})
	}
}

// TestHoldBackIsShort holds the other half of row 6: text waits only while it may be the beginning of a stop string.
func TestHoldBackIsShort(t *testing.T) {
	f := newFixture(t, setup{})
	f.play("AB", "C", "D E", "F", eosPiece)
	rec := f.do("POST", "/v1/completions", `{"prompt":"x","stop":"CD X","stream":true}`)
	var frames []string
	for data := range openai.Events(rec.Body) {
		r, err := openai.DecodeReply(data)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, r.Choices[0].Text)
	}
	if diff := cmp.Diff([]string{"AB", "CD E", "F", ""}, frames); diff != "" {
		t.Errorf("frames: -want +got\n%s", diff)
	}
}

// TestBug3ClientGone is llama.cpp#24496: the client leaves, generation goes on to the limit. Here no step begins after the
// one in hand, streaming or not, and the only slot serves the next request.
func TestBug3ClientGone(t *testing.T) {
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream=%v", stream), func(t *testing.T) {
			g := make(gate)
			f := newFixture(t, setup{seqs: 1, maxLen: 4096, blocks: 256, toy: executortest.Options{Step: g.step}})
			f.play("F")
			addr := f.listen()
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			body := fmt.Sprintf(`{"prompt":"0123456789","max_tokens":2000,"ignore_eos":true,"stream":%v}`, stream)
			io.WriteString(conn, rawPost(body))
			for range 5 {
				g <- struct{}{} // five tokens
			}
			if stream {
				lines := bufio.NewScanner(conn)
				for n := 0; n < 4 && lines.Scan(); {
					if strings.HasPrefix(lines.Text(), "data: ") {
						n++
					}
				}
			}
			conn.Close()
			f.waitFor("the handler to end", func() bool { return f.active.Load() == 0 })
			close(g)
			f.idle()
			if n := f.steps.Load(); n > 6 {
				t.Errorf("%d steps were computed, want 5 and the one in hand", n)
			}
			if rec := f.do("POST", "/v1/completions", `{"prompt":"0123456789","max_tokens":5,"ignore_eos":true}`); rec.Code != 200 {
				t.Errorf("the next request: %d %s", rec.Code, rec.Body)
			}
		})
	}
}

// TestHalfClosedClientGetsNoEmptyAnswer: a client that only stops sending, as one piped through nc does, looks like one that
// left. Its request ends, and it must not read "200 OK" without a body.
func TestHalfClosedClientGetsNoEmptyAnswer(t *testing.T) {
	g := make(gate)
	f := newFixture(t, setup{toy: executortest.Options{Step: g.step}})
	conn, err := net.Dial("tcp", f.listen())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, rawPost(`{"prompt":"0123456789","max_tokens":5}`))
	g <- struct{}{}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || len(answer) > 0 {
		t.Errorf("answer %q %v, want none", answer, err)
	}
	close(g)
	f.idle()
}

// TestBug4CancelDuringPrefill is ollama#11889: a cancel during prefill has no effect until the first token.
func TestBug4CancelDuringPrefill(t *testing.T) {
	g := make(gate)
	f := newFixture(t, setup{budget: 16, maxLen: 1024, toy: executortest.Options{Step: g.step}})
	addr := f.listen()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"prompt":"` + strings.Repeat("x", 800) + `","max_tokens":5}` // 50 chunks
	io.WriteString(conn, rawPost(body))
	g <- struct{}{}
	g <- struct{}{}
	conn.Close()
	f.waitFor("the handler to end", func() bool { return f.active.Load() == 0 })
	close(g)
	f.idle()
	if n := f.steps.Load(); n > 3 {
		t.Errorf("%d chunks were computed, want 2 and the one in hand", n)
	}
}

// waitFor waits until a condition holds that another goroutine brings about.
func (f *fixture) waitFor(what string, ok func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			f.t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestBug21SameRequestID is vllm#10583: two requests with one id break the engine, and the abort of one kills the other.
func TestBug21SameRequestID(t *testing.T) {
	g := make(gate)
	f := newFixture(t, setup{toy: executortest.Options{Step: g.step}})
	addr := f.listen()
	send := func() (*http.Response, error) {
		body := strings.NewReader(`{"prompt":"abc","max_tokens":40,"ignore_eos":true,"temperature":0}`)
		r, err := http.NewRequest("POST", "http://"+addr+"/v1/completions", body)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Request-Id", "same")
		return client.Do(r)
	}
	leaver, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"prompt":"abc","max_tokens":40,"ignore_eos":true}`
	io.WriteString(leaver, strings.Replace(rawPost(body), "\r\n", "\r\nX-Request-Id: same\r\n", 1))
	f.waitFor("the first request", func() bool { return f.active.Load() == 1 })
	texts := make([]string, 3)
	var all sync.WaitGroup
	for i := range texts {
		all.Go(func() {
			resp, err := send()
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if resp.Header.Get("X-Request-Id") != "same" {
				t.Errorf("X-Request-Id %q came back", resp.Header.Get("X-Request-Id"))
			}
			texts[i], _ = answerOf(t, readAll(t, resp.Body))
		})
	}
	f.waitFor("all requests", func() bool { return f.active.Load() == 4 })
	leaver.Close()
	f.waitFor("the first to end", func() bool { return f.active.Load() == 3 })
	close(g)
	all.Wait()
	if texts[0] == "" || texts[1] != texts[0] || texts[2] != texts[0] {
		t.Errorf("texts differ: %q", texts)
	}
	f.idle()
}

// TestBug24LongPrompt is mistral.rs#1174: a prompt far too long takes all of the processor, or the server. Here it is refused
// with its numbers before a step is computed, or cut as the request asks.
func TestBug24LongPrompt(t *testing.T) {
	f := newFixture(t, setup{})
	long := strings.Repeat("word ", 8*512/5) // 8 times the context
	for _, tc := range []struct {
		body, message string
	}{
		{`{"prompt":"` + long + `"}`, fmt.Sprintf("prompt of %d tokens and 1 output tokens exceed the context of 512", len(long))},
		{`{"prompt":"` + strings.Repeat(long, 8) + `"}`, fmt.Sprintf(
			"prompt of %d bytes has at least %d tokens and exceeds the limit of 512", 8*len(long), (8*len(long)+11)/12)},
		{
			`{"prompt":"` + long + `","truncate_prompt_tokens":600}`,
			"truncate_prompt_tokens must be at most 512, the longest request, got 600",
		},
	} {
		rec := f.do("POST", "/v1/completions", tc.body)
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), tc.message) {
			t.Errorf("%d %s, want 400 with %q", rec.Code, rec.Body, tc.message)
		}
	}
	if n := f.steps.Load(); n != 0 {
		t.Errorf("%d steps were computed for prompts that are refused", n)
	}
	for _, tc := range []struct {
		extra  string
		tokens int
	}{{`-1,"max_tokens":2`, 510}, {`7`, 7}, {`7,"truncation_side":"right"`, 7}} {
		rec := f.do("POST", "/v1/completions", `{"prompt":"`+long+`","truncate_prompt_tokens":`+tc.extra+`}`)
		if want := fmt.Sprintf(`"prompt_tokens":%d,`, tc.tokens); rec.Code != 200 || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("truncated: %d %s, want %s", rec.Code, rec.Body, want)
		}
	}
	f.idle()
}

// TestBug22NoLimit is llama.cpp#3969: no max_tokens and a model that never ends. A chat ends with the context.
func TestBug22NoLimit(t *testing.T) {
	f := newFixture(t, setup{maxLen: 256})
	f.play("F", "F")
	rec := f.do("POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}]}`)
	if !strings.Contains(rec.Body.String(), `"finish_reason":"length"`) || !strings.Contains(rec.Body.String(), `"total_tokens":256,`) {
		t.Errorf("%d %s, want length at 256 tokens", rec.Code, rec.Body)
	}
}

// TestChoices holds that every choice of a stream begins with its role and ends once, that choices differ when they are
// sampled, and that the first does not depend on their number.
func TestChoices(t *testing.T) {
	f := newFixture(t, setup{})
	const ask = `{"messages":[{"role":"user","content":"go"}],"max_tokens":8,"seed":5,"ignore_eos":true`
	rec := f.do("POST", "/v1/chat/completions", ask+`,"n":3,"stream":true}`)
	texts, finished := make([]string, 3), make([]string, 3)
	for data := range openai.Events(rec.Body) {
		r, err := openai.DecodeReply(data)
		if err != nil {
			t.Fatal(err)
		}
		c := r.Choices[0]
		if (texts[c.Index] == "") != (c.Delta.Role == "assistant") || finished[c.Index] != "" {
			t.Errorf("frame out of order: %s", data)
		}
		texts[c.Index] += c.Delta.Role + c.Delta.Content
		finished[c.Index] = c.FinishReason
	}
	if diff := cmp.Diff([]string{"length", "length", "length"}, finished); diff != "" {
		t.Errorf("finish reasons: -want +got\n%s", diff)
	}
	if texts[0] == texts[1] || texts[1] == texts[2] {
		t.Errorf("choices do not differ: %q", texts)
	}
	alone, err := openai.DecodeReply(f.do("POST", "/v1/chat/completions", ask+`}`).Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got := "assistant" + alone.Choices[0].Message.Content; got != texts[0] {
		t.Errorf("the first choice is %q of three, %q alone", texts[0], got)
	}
}

// TestFailedRow holds that a row which fails ends one request: 500 before the first byte, a frame after it.
func TestFailedRow(t *testing.T) {
	f := newFixture(t, setup{toy: executortest.Options{Row: func(p *sched.Planned) error {
		if p.From > 3 {
			return fmt.Errorf("the row is broken")
		}
		return nil
	}}})
	f.play("F", "F", "F", "F", "F", "F")
	rec := f.do("POST", "/v1/completions", `{"prompt":"ab"}`)
	if rec.Code != 500 || !strings.Contains(rec.Body.String(), `"type":"InternalServerError"`) {
		t.Errorf("whole: %d %s", rec.Code, rec.Body)
	}
	rec = f.do("POST", "/v1/completions", `{"prompt":"ab","stream":true}`)
	body := rec.Body.String()
	if rec.Code != 200 || !strings.Contains(body, `data: {"error":{"message":`) || !strings.HasSuffix(body, "\n\ndata: [DONE]\n\n") {
		t.Errorf("stream: %d %s", rec.Code, body)
	}
	f.idle()
}

// TestQueueFull holds that requests beyond the queue are refused at once, and may be sent again.
func TestQueueFull(t *testing.T) {
	g := make(gate)
	f := newFixture(t, setup{seqs: 1, queue: 1, toy: executortest.Options{Step: g.step}})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { f.do("POST", "/v1/completions", `{"prompt":"ab","max_tokens":1}`) })
		f.waitFor("a place", func() bool { return f.model.Engine.Snapshot().Live > 0 })
	}
	f.waitFor("a full queue", func() bool {
		rec := f.do("POST", "/v1/completions", `{"prompt":["a","b","c"],"max_tokens":1}`)
		return rec.Code == 503 && rec.Header().Get("Retry-After") != "" && strings.Contains(rec.Body.String(), "queue is full")
	})
	close(g)
	all.Wait()
	f.idle()
}

// TestPanicEndsOneRequest holds that a fault of ours in a handler is a 500 with a log, and no more.
func TestPanicEndsOneRequest(t *testing.T) {
	f := newFixture(t, setup{})
	f.routes.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("a fault") })
	rec := f.do("GET", "/panic", "")
	if rec.Code != 500 || !strings.Contains(rec.Body.String(), `"message":"internal error"`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if log := f.logs.String(); !strings.Contains(log, "handler panicked") || !strings.Contains(log, "a fault") {
		t.Errorf("log: %s", log)
	}
}

// TestFailedEngine holds that a fault which ends the engine is told by every probe, and to every client.
func TestFailedEngine(t *testing.T) {
	f := newFixture(t, setup{toy: executortest.Options{Step: func(*sched.Plan) error { panic("a fault of ours") }}})
	for range 2 { // the request that met it, and one that comes later
		rec := f.do("POST", "/v1/completions", `{"prompt":"ab"}`)
		if rec.Code != 500 || !strings.Contains(rec.Body.String(), "engine failed") {
			t.Errorf("%d %s, want 500", rec.Code, rec.Body)
		}
	}
	for _, path := range []string{"/health", "/health/live", "/health/ready"} {
		if rec := f.do("GET", path, ""); rec.Code != 503 {
			t.Errorf("%s: %d %s, want 503", path, rec.Code, rec.Body)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	f := newFixture(t, setup{options: Options{MaxRequestBytes: 100}})
	rec := f.do("POST", "/v1/completions", `{"prompt":"`+strings.Repeat("x", 100)+`"}`)
	if rec.Code != 413 || !strings.Contains(rec.Body.String(), "the body exceeds 100 bytes") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// TestTooLargeBodyIsNotAskedFor: a client that waits for 100 Continue before it sends gigabytes is told at once, and sends
// nothing.
func TestTooLargeBodyIsNotAskedFor(t *testing.T) {
	f := newFixture(t, setup{})
	conn, err := net.Dial("tcp", f.listen())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n")
	if answer := readAll(t, conn); !strings.HasPrefix(answer, "HTTP/1.1 413 ") {
		t.Errorf("answer %q, want 413", answer)
	}
}

// TestErrorsQuoteLittle: what an error quotes is the client's, and must not come back, or go to the log, by the megabyte.
func TestErrorsQuoteLittle(t *testing.T) {
	long := strings.Repeat("x", 500_000)
	for name, body := range map[string]string{
		"model":          `{"prompt":"a","model":"` + long + `"}`,
		"field":          `{"prompt":"a","` + long + `":1,"` + long + `":2}`,
		"nesting":        `{"prompt":"a","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		"logit_bias":     `{"prompt":"a","logit_bias":{"` + long + `":1}}`,
		"format":         `{"prompt":"a","response_format":{"type":"` + long + `"}}`,
		"side":           `{"prompt":"a","truncation_side":"` + long + `"}`,
		"a long é":       `{"prompt":"a","model":"` + strings.Repeat("é", 5000) + `"}`,
		"a type of part": `{"messages":[{"role":"user","content":[{"type":"` + long + `"}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, setup{options: Options{LogRequests: true}})
			path := "/v1/completions"
			if strings.Contains(body, "messages") {
				path = "/v1/chat/completions"
			}
			rec := f.do("POST", path, body)
			if rec.Code < 400 || rec.Code > 404 || rec.Body.Len() > 2*(maxMessage+maxParam) {
				t.Errorf("%d with %d bytes: %.200s", rec.Code, rec.Body.Len(), rec.Body)
			}
			if n := len(f.logs.String()); n > 2*maxMessage {
				t.Errorf("%d bytes were logged", n)
			}
		})
	}
}

// TestLogsHoldNoText holds that a line for each request has its facts and never its words.
func TestLogsHoldNoText(t *testing.T) {
	f := newFixture(t, setup{options: Options{LogRequests: true}})
	f.play("hello", eosPiece)
	f.do("POST", "/v1/completions", `{"prompt":"a secret"}`, "X-Request-Id", "mine")
	log := f.logs.String()
	for _, want := range []string{"request answered", "request_id=cmpl-mine", "prompt_tokens=8", "completion_tokens=2", "status=200"} {
		if !strings.Contains(log, want) {
			t.Errorf("log has no %s: %s", want, log)
		}
	}
	if strings.Contains(log, "secret") || strings.Contains(log, "hello") {
		t.Errorf("log tells what was said: %s", log)
	}
	quiet := newFixture(t, setup{})
	quiet.do("GET", "/version", "")
	if log := quiet.logs.String(); log != "" {
		t.Errorf("requests are logged without being asked for: %s", log)
	}
}

// client keeps no connections, so that a test leaves no goroutine.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

var abandoned = flag.Int("abandoned", 1000, "connections that TestAbandonedConnections abandons")

// TestAbandonedConnections is row 10 of docs/bug-reports.md and more: clients that leave at every point, in the header, in the body, while
// waiting, in the stream. The engine goes on, nothing is left over, the next request is served.
func TestAbandonedConnections(t *testing.T) {
	n := *abandoned
	if testing.Short() {
		n = min(n, 200)
	}
	f := newFixture(t, setup{queue: 64})
	addr := f.listen()
	body := `{"prompt":"0123456789","max_tokens":30,"ignore_eos":true,"stream":%v}`
	var all sync.WaitGroup
	slots := make(chan struct{}, 50)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			text := fmt.Sprintf(body, i%2 == 0)
			request := rawPost(text)
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			sent := min(len(request), 20*(i%20)) // header, body or all of it
			if i%3 == 0 {
				sent = len(request)
			}
			conn.Write([]byte(request[:sent]))
			if i%3 == 0 { // some read a little first
				conn.Read(make([]byte, 1+(i%7)*100))
			}
		})
	}
	all.Wait()
	f.waitFor("the handlers to end", func() bool { return f.active.Load() == 0 })
	f.idle()
	rec := f.do("POST", "/v1/completions", `{"prompt":"ab","max_tokens":3,"ignore_eos":true}`)
	if rec.Code != 200 {
		t.Errorf("the next request: %d %s", rec.Code, rec.Body)
	}
	if strings.Contains(f.logs.String(), "panic") {
		t.Errorf("log: %s", f.logs)
	}
}

// TestBug84EvictionUnderChurn is vllm#47958: the thread that took requests in was stuck in cache eviction, with the API alive.
// Prompts of a few families, on a pool that holds three requests, evict one another's prefixes while metrics, health and the
// list of models are read and the cache is reset; the race detector looks on (make race). Everybody gets an answer.
func TestBug84EvictionUnderChurn(t *testing.T) {
	f := newFixture(t, setup{blocks: 12, options: Options{DevEndpoints: true}})
	n := 200
	if testing.Short() {
		n = 60
	}
	served := make(chan struct{})
	var readers, all sync.WaitGroup
	for _, c := range [][2]string{
		{"GET", "/metrics"},
		{"GET", "/health"},
		{"GET", "/v1/models"},
		{"POST", "/reset_prefix_cache"}, // refused while blocks are in use
		{"POST", "/reset_prefix_cache?reset_running_requests=true"},
	} {
		readers.Go(func() {
			for {
				if rec := f.do(c[0], c[1], ""); rec.Code >= 500 && rec.Code != http.StatusServiceUnavailable {
					t.Errorf("%s: %d %s", c[1], rec.Code, rec.Body)
				}
				select {
				case <-served:
					return
				default:
				}
			}
		})
	}
	clients := make(chan int)
	for range 6 {
		all.Go(func() {
			for i := range clients {
				prompt := strings.Repeat(string(rune('a'+i%5)), 33+i%17)
				rec := f.do("POST", "/v1/completions", fmt.Sprintf(`{"prompt":%q,"max_tokens":9,"ignore_eos":true}`, prompt))
				if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"completion_tokens":9`) {
					t.Errorf("request %d: %d %s", i, rec.Code, rec.Body)
				}
			}
		})
	}
	for i := range n {
		clients <- i
	}
	close(clients)
	all.Wait()
	close(served)
	readers.Wait()
	f.idle()
}
