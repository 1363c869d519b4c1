package bench

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Metric is one of the latencies that a benchmark reports.
type Metric string

// The metrics, by the names of --percentile-metrics.
const (
	TTFT Metric = "ttft" // time to first token
	TPOT Metric = "tpot" // time per output token after the first
	ITL  Metric = "itl"  // inter-token latency: the gaps between frames
	E2EL Metric = "e2el" // end-to-end latency
)

// Metrics lists all metrics in the order of reports.
func Metrics() []Metric { return []Metric{TTFT, TPOT, ITL, E2EL} }

// ParseMetric reads the name of a metric.
func ParseMetric(name string) (Metric, error) {
	if m := Metric(name); slices.Contains(Metrics(), m) {
		return m, nil
	}
	return "", fmt.Errorf("unknown metric %q: known are ttft, tpot, itl and e2el", name)
}

// title is the heading of the metric in the printed report.
func (m Metric) title() string {
	return map[Metric]string{
		TTFT: "Time to First Token", TPOT: "Time per Output Token (excl. 1st token)",
		ITL: "Inter-token Latency", E2EL: "End-to-end Latency",
	}[m]
}

// of returns the metric's values for one request, in milliseconds: none, one or, for ITL, several.
func (m Metric) of(r *Record) []float64 {
	switch m {
	case TTFT:
		return []float64{milliseconds(r.TTFT)}
	case TPOT:
		if r.OutputTokens < 2 {
			return nil
		}
		return []float64{milliseconds(r.TPOT())}
	case E2EL:
		return []float64{milliseconds(r.Latency)}
	}
	values := make([]float64, len(r.ITL))
	for i, gap := range r.ITL {
		values[i] = milliseconds(gap)
	}
	return values
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Goal is one part of a service level objective: the metric must not exceed the limit.
type Goal struct {
	Metric       Metric
	Milliseconds float64
}

// ParseGoal reads a goal such as ttft:500.
func ParseGoal(s string) (Goal, error) {
	name, limit, ok := strings.Cut(s, ":")
	ms, err := strconv.ParseFloat(limit, 64)
	if !ok || err != nil || ms < 0 || math.IsNaN(ms) {
		return Goal{}, fmt.Errorf("goal %q: want METRIC:MILLISECONDS, such as ttft:500", s)
	}
	switch m := Metric(name); m {
	case TTFT, TPOT, E2EL:
		return Goal{m, ms}, nil
	}
	return Goal{}, fmt.Errorf("goal %q: metric is not ttft, tpot or e2el", s)
}

// met says whether a request met all goals. A request without the metric, such as tpot of a single token, meets its goal.
func met(r *Record, goals []Goal) bool {
	for _, g := range goals {
		for _, v := range g.Metric.of(r) {
			if v > g.Milliseconds {
				return false
			}
		}
	}
	return true
}

// Summary is what a run comes to.
type Summary struct {
	Duration                  time.Duration
	Completed, Failed, Unsent int
	InputTokens, OutputTokens int
	Good                      int     // completed requests that met the goals
	PeakTokensPerSecond       float64 // most tokens that arrived within one second of the run
	PeakConcurrency           int     // most requests under way at once

	Values map[Metric][]float64 // milliseconds, sorted, of the completed requests
}

// Summarize reduces the results of a run.
func (r *Results) Summarize(goals []Goal) *Summary {
	s := &Summary{Duration: r.Duration, Values: map[Metric][]float64{}}
	for _, record := range r.Records {
		switch {
		case record == nil:
			s.Unsent++
			continue
		case record.Err != nil:
			s.Failed++
			continue
		}
		s.Completed++
		s.InputTokens += record.PromptTokens
		s.OutputTokens += record.OutputTokens
		if met(record, goals) {
			s.Good++
		}
		for _, m := range Metrics() {
			s.Values[m] = append(s.Values[m], m.of(record)...)
		}
	}
	for _, values := range s.Values {
		slices.Sort(values)
	}
	s.PeakTokensPerSecond, s.PeakConcurrency = r.peakTokens(), r.peakConcurrency()
	return s
}

// answered yields the records of the requests that got their answer.
func (r *Results) answered() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for _, record := range r.Records {
			if record != nil && record.Err == nil && !yield(record) {
				return
			}
		}
	}
}

// peakTokens counts the tokens that arrived in each second of the run. A frame may carry several tokens, or part of one:
// the server's count is spread over the frames.
func (r *Results) peakTokens() float64 {
	arrived := make([]float64, int(r.Duration/time.Second)+1)
	for record := range r.answered() {
		at := record.Start.Sub(r.Start) + record.TTFT
		perFrame := float64(record.OutputTokens) / float64(len(record.ITL)+1)
		for i := range len(record.ITL) + 1 {
			if i > 0 {
				at += record.ITL[i-1]
			}
			arrived[min(int(at/time.Second), len(arrived)-1)] += perFrame
		}
	}
	return slices.Max(arrived)
}

// peakConcurrency goes through the beginnings and ends of requests in the order of time.
func (r *Results) peakConcurrency() int {
	type change struct {
		at    time.Time
		delta int
	}
	var changes []change
	for record := range r.answered() {
		changes = append(changes, change{record.Start, 1}, change{record.Start.Add(record.Latency), -1})
	}
	slices.SortFunc(changes, func(a, b change) int { // at the same moment ends come first
		return cmp.Or(a.at.Compare(b.at), a.delta-b.delta)
	})
	now, peak := 0, 0
	for _, c := range changes {
		now += c.delta
		peak = max(peak, now)
	}
	return peak
}

// perSecond is a count as a rate over the run.
func (s *Summary) perSecond(n int) float64 {
	if s.Duration <= 0 {
		return 0
	}
	return float64(n) / s.Duration.Seconds()
}

// mean and deviation (of the population), 0 without values.
func mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func deviation(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(values)))
}

// percentile returns the value that p per cent of the sorted values do not exceed, interpolated between neighbours as
// numpy does; 0 without values.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := p / 100 * float64(len(sorted)-1)
	low := int(at)
	if low >= len(sorted)-1 {
		return sorted[len(sorted)-1]
	}
	part := at - float64(low)
	return sorted[low]*(1-part) + sorted[low+1]*part
}
