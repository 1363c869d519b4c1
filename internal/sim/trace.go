package sim

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quire-ai/quire/sched"
)

// Trace is one recorded run of a scheduler: what it was given, and what it decided in each step.
type Trace struct {
	Header Header
	Steps  []Line
	End    End
}

// Header is what a run was given.
type Header struct {
	Type      string         `json:"t"`
	Format    int            `json:"format"`
	Name      string         `json:"name"`
	Kind      string         `json:"kind"`
	Features  []string       `json:"features"`
	Connector bool           `json:"connector"`
	Config    TraceConfig    `json:"config"`
	Requests  []TraceRequest `json:"requests"`
	Ops       []Op           `json:"ops"`
	MaxSteps  int            `json:"max_steps,omitzero"`
	Commit    string         `json:"vllm_commit,omitzero"`

	// Outputs says where output tokens come from: empty for a formula of request and position, so that they never depend
	// on scheduling; "history" for the toy model, which reads each token's history back through the block table.
	Outputs string `json:"outputs,omitzero"`
}

// TraceConfig is the scheduler's configuration under vLLM's names.
type TraceConfig struct {
	BlockSize            int      `json:"block_size"`
	NumBlocks            int      `json:"num_blocks"` // with the null block
	MaxNumSeqs           int      `json:"max_num_seqs"`
	MaxNumBatchedTokens  int      `json:"max_num_batched_tokens"`
	MaxModelLen          int      `json:"max_model_len"`
	EnableChunkedPrefill bool     `json:"enable_chunked_prefill"`
	LongPrefillThreshold int      `json:"long_prefill_token_threshold"`
	Policy               string   `json:"policy"`
	EnablePrefixCaching  bool     `json:"enable_prefix_caching"`
	ReserveFullISL       bool     `json:"reserve_full_isl"`
	Watermark            float64  `json:"watermark"`
	AsyncScheduling      bool     `json:"async_scheduling"`
	PipelineDepth        int      `json:"pipeline_depth"`
	LoadFailurePolicy    string   `json:"kv_load_failure_policy"`
	NumSpecTokens        int      `json:"num_spec_tokens"`
	Eagle                bool     `json:"eagle"`
	MaxLoRAs             int      `json:"max_loras"`
	KVEvents             bool     `json:"kv_events"`
	Groups               []string `json:"groups"`
	KVRole               string   `json:"kv_role,omitzero"`
}

// TraceRequest is one request of a run.
type TraceRequest struct {
	ID           string   `json:"id"`
	Index        int      `json:"idx"`
	Arrive       int      `json:"arrive"` // step
	ArrivalTime  float64  `json:"arrival_time"`
	Prompt       [][3]int `json:"prompt"` // segments of seed, offset, length
	MaxTokens    int      `json:"max_tokens"`
	Priority     int      `json:"priority,omitzero"`
	MinTokens    int      `json:"min_tokens,omitzero"`
	EOSAt        *int     `json:"eos_at,omitzero"`
	StopAt       *int     `json:"stop_at,omitzero"`
	Salt         string   `json:"salt,omitzero"`
	LoRA         *int     `json:"lora,omitzero"`
	SkipCache    bool     `json:"skip_cache,omitzero"`
	GrammarReady *int     `json:"grammar_ready,omitzero"` // step
	GrammarError *int     `json:"grammar_error,omitzero"` // step
	External     *Ext     `json:"ext,omitzero"`
	FailAt       *int     `json:"fail_at,omitzero"` // output whose row fails; only with outputs from history
}

// Ext is what the recorded connector does for a request.
type Ext struct {
	Hit        int    `json:"hit"`
	Mode       string `json:"mode"` // async or sync
	Latency    int    `json:"latency"`
	Reload     *bool  `json:"reload,omitzero"` // nil means true
	Defers     int    `json:"defers,omitzero"`
	FailBlocks []int  `json:"fail_blocks,omitzero"`
	FailTimes  *int   `json:"fail_times,omitzero"` // nil means 1
	SendDelay  int    `json:"send_delay,omitzero"`
}

// Op is something done to the scheduler at the start of a step.
type Op struct {
	Step         int      `json:"step"`
	Op           string   `json:"op"`
	IDs          []string `json:"ids,omitzero"`
	ResetRunning bool     `json:"reset_running,omitzero"`
	Level        int      `json:"level,omitzero"`
}

// Line is one recorded step: the fields of the recording by their key, each as canonical JSON.
type Line map[string]jsontext.Value

// End is how a run ended.
type End struct {
	Reason      string            `json:"reason"` // drained, stuck or max_steps
	Steps       int               `json:"steps"`
	Preemptions int               `json:"preemptions"`
	Finished    map[string]string `json:"finished"`
	OutputSHA   string            `json:"output_sha,omitzero"`
}

// Limits of what the reader accepts: far above any recorded run, low enough that a hostile file cannot exhaust memory.
const (
	maxLineBytes     = 16 << 20
	maxTraceBytes    = 1 << 30
	maxPromptTokens  = 1 << 22
	maxTraceRequests = 1 << 17
)

// ReadTraceFile reads a trace, gzipped or not.
func ReadTraceFile(name string) (*Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := ReadTrace(f)
	if err != nil {
		return nil, fmt.Errorf("read trace %s: %w", name, err)
	}
	return t, nil
}

// ReadTrace reads a trace, gzipped or not.
func ReadTrace(r io.Reader) (*Trace, error) {
	br := bufio.NewReader(r)
	if magic, _ := br.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, err
		}
		br = bufio.NewReader(z)
	}
	lines := bufio.NewScanner(io.LimitReader(br, maxTraceBytes))
	lines.Buffer(make([]byte, 0, 1<<16), maxLineBytes)
	t := &Trace{}
	for n := 1; lines.Scan(); n++ {
		if err := t.readLine(n, lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if t.Header.Type == "" {
		return nil, errors.New("no header line")
	}
	return t, nil
}

func (t *Trace) readLine(n int, line []byte) error {
	if n == 1 {
		if err := json.Unmarshal(line, &t.Header); err != nil {
			return err
		}
		return t.Header.check()
	}
	var l Line
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	for k, v := range l {
		if err := v.Canonicalize(); err != nil {
			return fmt.Errorf("field %q: %w", k, err)
		}
		l[k] = v
	}
	switch kind := string(l["t"]); kind {
	case `"step"`:
		t.Steps = append(t.Steps, l)
	case `"end"`:
		return json.Unmarshal(line, &t.End)
	default:
		return fmt.Errorf("unknown kind of line %s", kind)
	}
	return nil
}

// check reports the first fault of a header.
func (h *Header) check() error {
	if h.Type != "header" || h.Format != 1 {
		return fmt.Errorf("first line is %q of format %d, want a header of format 1", h.Type, h.Format)
	}
	if len(h.Requests) > maxTraceRequests {
		return fmt.Errorf("%d requests exceed %d", len(h.Requests), maxTraceRequests)
	}
	seen := map[string]bool{}
	for i := range h.Requests {
		r := &h.Requests[i]
		if seen[r.ID] {
			return fmt.Errorf("two requests have the id %q", r.ID)
		}
		seen[r.ID] = true
		total := 0
		for _, seg := range r.Prompt {
			if seg[2] < 0 || seg[2] > maxPromptTokens {
				return fmt.Errorf("request %q: a prompt segment of %d tokens", r.ID, seg[2])
			}
			total += seg[2]
		}
		if total < 1 || total > maxPromptTokens || r.MaxTokens < 1 || r.MaxTokens > maxPromptTokens {
			return fmt.Errorf("request %q: %d prompt tokens, %d output tokens", r.ID, total, r.MaxTokens)
		}
	}
	cfg, err := h.Config.scheduler()
	if err != nil {
		return err
	}
	return checkSize(&cfg)
}

// checkSize refuses configurations that are faulty, or larger than a simulation has use for.
func checkSize(cfg *sched.Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	const most = 1 << 20
	if max(cfg.Blocks, cfg.BlockSize, cfg.MaxNumSeqs, cfg.MaxModelLen) > most || max(cfg.SpecTokens, cfg.PipelineDepth) > 64 {
		return errors.New("configuration is larger than a simulation has use for")
	}
	return nil
}

// promptTokens returns the request's prompt: token j of a segment of seed s is (s·1000003 + j·7919 + 12345) mod 50000 + 3.
func (r *TraceRequest) promptTokens() []int32 {
	var p []int32
	for _, seg := range r.Prompt {
		for j := seg[1]; j < seg[1]+seg[2]; j++ {
			p = append(p, int32(mod(seg[0]*1000003+j*7919+12345, 50000)+3))
		}
	}
	return p
}

// Token ids that end a request in recorded runs.
const (
	traceStop = 1
	traceEOS  = 2
)

// output returns the k-th output token of the request. It never depends on scheduling.
func (r *TraceRequest) output(k int) int32 {
	switch {
	case r.EOSAt != nil && *r.EOSAt == k:
		return traceEOS
	case r.StopAt != nil && *r.StopAt == k:
		return traceStop
	}
	return int32(mod(r.Index*611953+k*7907+77, 50000) + 3)
}

// ends returns the outputs at which the request's end is sampled.
func (r *TraceRequest) ends() map[int]int32 {
	ends := map[int]int32{}
	if r.StopAt != nil {
		ends[*r.StopAt] = traceStop
	}
	if r.EOSAt != nil {
		ends[*r.EOSAt] = traceEOS
	}
	return ends
}

func mod(a, m int) int { return ((a % m) + m) % m }
