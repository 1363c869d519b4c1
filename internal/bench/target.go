package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/quire-ai/quire/internal/openai"
)

// Backend is the form of a server's API.
type Backend string

// The backends: prompts sent as text to /v1/completions, or as messages to /v1/chat/completions.
const (
	Completions Backend = "openai"
	Chat        Backend = "openai-chat"
)

// Endpoint is the usual path of the backend.
func (b Backend) Endpoint() string {
	if b == Chat {
		return "/v1/chat/completions"
	}
	return "/v1/completions"
}

// Target is the server under load. Safe for concurrent use.
type Target struct {
	Client   *http.Client
	BaseURL  string // such as http://127.0.0.1:8000
	Endpoint string // path; "" is the backend's
	Backend  Backend
	Model    string         // "" leaves the field out
	APIKey   string         // "" sends none
	Extra    map[string]any // further fields of the body; they win over those of the benchmark
}

// NewClient returns a client without a limit on connections and without a timeout: a benchmark is about slow answers too.
func NewClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = 0
	transport.MaxIdleConnsPerHost = 1 << 16
	transport.DisableCompression = true
	return &http.Client{Transport: transport}
}

// Request is one request of a benchmark.
type Request struct {
	ID           string // sent as X-Request-Id unless ""
	Prompt       string
	PromptIDs    []int32 // instead of Prompt, for Completions
	OutputTokens int
	IgnoreEOS    bool
	NoStream     bool // ask for the answer as a whole; its first token is then its last

	// Started, if not nil, is called when the first frame with an answer in it is there.
	Started func()
}

// Record is what a client saw of one request.
type Record struct {
	Status       int // HTTP status; 0 if there was no answer
	PromptTokens int // by the server's own count
	CachedTokens int // of these, by the same
	OutputTokens int
	FinishReason string
	Text         string
	TokenIDs     []int32 // where the server was asked for them (return_token_ids)
	Done         bool    // the stream ended with [DONE], or the answer was whole

	Start   time.Time
	TTFT    time.Duration   // to the first frame with an answer in it
	ITL     []time.Duration // between frames after the first
	Latency time.Duration   // to the last frame, or to the error

	Err error
}

// TPOT is the time for each token after the first, 0 for answers of one token.
func (r *Record) TPOT() time.Duration {
	if r.OutputTokens < 2 {
		return 0
	}
	return (r.Latency - r.TTFT) / time.Duration(r.OutputTokens-1)
}

// Send sends a request and reads the answer to its end. Faults are in the record.
func (t *Target) Send(ctx context.Context, req *Request) *Record {
	r := &Record{Start: time.Now()}
	r.Err = t.exchange(ctx, req, r)
	if r.Latency == 0 {
		r.Latency = time.Since(r.Start)
	}
	return r
}

func (t *Target) exchange(ctx context.Context, req *Request, r *Record) error {
	body, err := json.Marshal(t.body(req))
	if err != nil {
		return err
	}
	endpoint := t.Endpoint
	if endpoint == "" {
		endpoint = t.Backend.Endpoint()
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(t.BaseURL, "/")+endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	post.Header.Set("Content-Type", "application/json")
	// Not sent: it lets the client ask again where the server closed an idle connection, as some do after seconds.
	post.Header["Idempotency-Key"] = nil
	if t.APIKey != "" {
		post.Header.Set("Authorization", "Bearer "+t.APIKey)
	}
	if req.ID != "" {
		post.Header.Set("X-Request-Id", req.ID)
	}
	resp, err := t.Client.Do(post)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r.Status = resp.StatusCode
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	if req.NoStream {
		return r.readWhole(resp.Body)
	}
	return r.readStream(resp.Body, req.Started)
}

// body is the JSON of a request: greedy unless Extra says otherwise.
func (t *Target) body(req *Request) map[string]any {
	body := map[string]any{"temperature": 0, "stream": !req.NoStream}
	if t.Model != "" {
		body["model"] = t.Model
	}
	if t.Backend == Chat {
		body["messages"] = []map[string]string{{"role": "user", "content": req.Prompt}}
		body["max_completion_tokens"] = req.OutputTokens
	} else {
		body["prompt"] = req.Prompt
		if req.PromptIDs != nil {
			body["prompt"] = req.PromptIDs
		}
		body["max_tokens"] = req.OutputTokens
	}
	if !req.NoStream {
		body["stream_options"] = map[string]bool{"include_usage": true}
	}
	if req.IgnoreEOS {
		body["ignore_eos"] = true
	}
	maps.Copy(body, t.Extra)
	return body
}

// refusal turns an answer that is not 200 into an error.
func refusal(resp *http.Response) error {
	const most = 64 << 10 // bytes of an error worth reading
	data, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	if reply, err := openai.DecodeReply(data); err == nil && reply.Error != nil && reply.Error.Message != "" {
		return fmt.Errorf("%s: %s", resp.Status, reply.Error.Message)
	}
	return fmt.Errorf("%s: %.200s", resp.Status, bytes.TrimSpace(data))
}

// readWhole reads an answer that is not streamed.
func (r *Record) readWhole(body io.Reader) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	reply, err := openai.DecodeReply(data)
	if err != nil {
		return fmt.Errorf("answer is not JSON: %w", err)
	}
	r.Latency = time.Since(r.Start)
	r.TTFT = r.Latency
	r.Done = true
	return r.take(reply)
}

// readStream reads the frames of an answer.
func (r *Record) readStream(body io.Reader, started func()) error {
	last := r.Start
	frames := 0
	for data, err := range openai.Events(body) {
		if err != nil {
			return fmt.Errorf("stream broken off after %d frames: %w", frames, err)
		}
		reply, err := openai.DecodeReply(data)
		if err != nil {
			return fmt.Errorf("frame %d is not JSON: %w", frames, err)
		}
		now := time.Now()
		if answers(reply, frames == 0) {
			if frames == 0 {
				r.TTFT = now.Sub(r.Start)
				if started != nil {
					started()
				}
			} else {
				r.ITL = append(r.ITL, now.Sub(last))
			}
			frames++
			last = now
		}
		if len(reply.Choices) > 0 {
			r.Latency = now.Sub(r.Start)
		}
		if err := r.take(reply); err != nil {
			return err
		}
	}
	r.Done = true
	if r.OutputTokens == 0 {
		r.OutputTokens = frames // a server without usage: a frame a token
	}
	if r.FinishReason == "" {
		return errors.New("stream ended without a finish_reason")
	}
	return nil
}

// answers says whether a frame stands for a token. The first frame of a chat names the role only, the last frame of a
// choice may give the reason only (and stands for the token if there was none before it), and the last of a stream has
// the usage only. Any other frame counts, also one whose token has no text of its own.
func answers(reply *openai.Reply, first bool) bool {
	if len(reply.Choices) == 0 {
		return false
	}
	c := &reply.Choices[0]
	switch {
	case c.Text != "" || c.Delta.Content != "" || c.Delta.Reasoning != "":
		return true
	case c.FinishReason != "":
		return first
	}
	return c.Delta.Role == ""
}

// take adds a whole answer or a frame of one to the record.
func (r *Record) take(reply *openai.Reply) error {
	if reply.Error != nil {
		return fmt.Errorf("server error: %s", reply.Error.Message)
	}
	for _, c := range reply.Choices {
		r.Text += c.Text + c.Message.Content + c.Delta.Content
		r.TokenIDs = append(r.TokenIDs, c.TokenIDs...)
		if c.FinishReason != "" {
			r.FinishReason = c.FinishReason
		}
	}
	if reply.Usage != nil {
		r.PromptTokens, r.OutputTokens = reply.Usage.PromptTokens, reply.Usage.CompletionTokens
		if d := reply.Usage.Details; d != nil {
			r.CachedTokens = d.CachedTokens
		}
	}
	return nil
}
