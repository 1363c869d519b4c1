package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"
)

// Description is what a result file says of the run besides its figures.
type Description struct {
	Date           time.Time
	Backend        Backend
	Label          string // "" is the backend
	Model          string
	NumPrompts     int
	Rate           float64
	Burstiness     float64
	MaxConcurrency int               // 0 is written as null
	Metadata       map[string]string // further members, from --metadata
}

// Selection is what is reported of the latencies.
type Selection struct {
	Metrics     []Metric // with percentiles; empty is ttft, tpot and itl
	Percentiles []float64
	Goals       []Goal
	Detailed    bool // also each request
}

// member is one member of a JSON object whose order is kept.
type member struct {
	key   string
	value any
}

// WriteJSON writes the result with the members of vllm bench serve (vllm/benchmarks/serve.py).
func WriteJSON(w io.Writer, d Description, r *Results, s *Summary, sel Selection) error {
	members := d.members()
	members = append(members, s.members(sel)...)
	if sel.Detailed {
		members = append(members, r.members()...)
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteString(", ")
		}
		key, err := json.Marshal(m.key)
		if err != nil {
			return err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return err
		}
		b.Write(key)
		b.WriteString(": ")
		b.Write(value)
	}
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

func (d Description) members() []member {
	label, concurrency, rate := d.Label, any(nil), any("inf")
	if label == "" {
		label = string(d.Backend)
	}
	if d.MaxConcurrency > 0 {
		concurrency = d.MaxConcurrency
	}
	if !math.IsInf(d.Rate, 1) {
		rate = d.Rate
	}
	members := []member{
		{"date", d.Date.Format("20060102-150405")},
		{"endpoint_type", d.Backend},
		{"backend", d.Backend},
		{"label", label},
		{"model_id", d.Model},
		{"tokenizer_id", d.Model},
		{"num_prompts", d.NumPrompts},
		{"request_rate", rate},
		{"burstiness", d.Burstiness},
		{"max_concurrency", concurrency},
	}
	for key, value := range d.Metadata {
		members = append(members, member{key, value})
	}
	return members
}

func (s *Summary) members(sel Selection) []member {
	var goodput any
	if len(sel.Goals) > 0 {
		goodput = s.perSecond(s.Good)
	}
	members := []member{
		{"duration", s.Duration.Seconds()},
		{"completed", s.Completed},
		{"failed", s.Failed},
		{"total_input_tokens", s.InputTokens},
		{"total_output_tokens", s.OutputTokens},
		{"request_throughput", s.perSecond(s.Completed)},
		{"request_goodput", goodput},
		{"output_throughput", s.perSecond(s.OutputTokens)},
		{"total_token_throughput", s.perSecond(s.InputTokens + s.OutputTokens)},
		{"max_output_tokens_per_s", s.PeakTokensPerSecond},
		{"max_concurrent_requests", s.PeakConcurrency},
	}
	for _, m := range sel.metrics() {
		values := s.Values[m]
		members = append(members,
			member{"mean_" + string(m) + "_ms", mean(values)},
			member{"median_" + string(m) + "_ms", percentile(values, 50)},
			member{"std_" + string(m) + "_ms", deviation(values)})
		for _, p := range sel.Percentiles {
			members = append(members, member{"p" + formatPercent(p) + "_" + string(m) + "_ms", percentile(values, p)})
		}
	}
	return members
}

// metrics are those selected, in the order of reports.
func (sel Selection) metrics() []Metric {
	if len(sel.Metrics) == 0 {
		return []Metric{TTFT, TPOT, ITL}
	}
	return sel.Metrics
}

// formatPercent writes 99 as 99 and 99.9 as 99.9.
func formatPercent(p float64) string { return strconv.FormatFloat(p, 'f', -1, 64) }

// members are the lists of --save-detailed, with an entry for each request in the order sent, in seconds.
func (r *Results) members() []member {
	n := len(r.Records)
	inputs, outputs := make([]int, n), make([]int, n)
	ttfts, starts := make([]float64, n), make([]float64, n)
	itls := make([][]float64, n)
	texts, faults := make([]string, n), make([]string, n)
	for i, record := range r.Records {
		itls[i] = []float64{}
		if record == nil {
			faults[i] = "not sent or not finished: the run was interrupted"
			continue
		}
		inputs[i], outputs[i], texts[i] = record.PromptTokens, record.OutputTokens, record.Text
		ttfts[i], starts[i] = record.TTFT.Seconds(), record.Start.Sub(r.Start).Seconds()
		for _, gap := range record.ITL {
			itls[i] = append(itls[i], gap.Seconds())
		}
		if record.Err != nil {
			faults[i] = record.Err.Error()
		}
	}
	return []member{
		{"input_lens", inputs},
		{"output_lens", outputs},
		{"ttfts", ttfts},
		{"itls", itls},
		{"start_times", starts},
		{"generated_texts", texts},
		{"errors", faults},
	}
}
