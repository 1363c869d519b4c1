package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
)

const reportWidth = 50

// Print writes the result as a table for people, laid out as vllm bench serve does.
func (s *Summary) Print(w io.Writer, d Description, sel Selection) error {
	var b strings.Builder
	heading(&b, " Serving Benchmark Result ", "=")
	count := func(name string, n int) { fmt.Fprintf(&b, "%-40s %-9d\n", name, n) }
	figure := func(name string, v float64) { fmt.Fprintf(&b, "%-40s %-9.2f\n", name, v) }
	count("Successful requests:", s.Completed)
	count("Failed requests:", s.Failed)
	if s.Unsent > 0 {
		count("Interrupted or not sent:", s.Unsent)
	}
	if d.MaxConcurrency > 0 {
		count("Maximum request concurrency:", d.MaxConcurrency)
	}
	if d.Rate > 0 && !math.IsInf(d.Rate, 1) {
		figure("Request rate configured (RPS):", d.Rate)
	}
	figure("Benchmark duration (s):", s.Duration.Seconds())
	count("Total input tokens:", s.InputTokens)
	count("Total generated tokens:", s.OutputTokens)
	figure("Request throughput (req/s):", s.perSecond(s.Completed))
	if len(sel.Goals) > 0 {
		figure("Request goodput (req/s):", s.perSecond(s.Good))
	}
	figure("Output token throughput (tok/s):", s.perSecond(s.OutputTokens))
	figure("Peak output token throughput (tok/s):", s.PeakTokensPerSecond)
	figure("Peak concurrent requests:", float64(s.PeakConcurrency))
	figure("Total token throughput (tok/s):", s.perSecond(s.InputTokens+s.OutputTokens))
	for _, m := range sel.metrics() {
		name, values := strings.ToUpper(string(m)), s.Values[m]
		heading(&b, m.title(), "-")
		figure("Mean "+name+" (ms):", mean(values))
		figure("Median "+name+" (ms):", percentile(values, 50))
		for _, p := range sel.Percentiles {
			figure("P"+formatPercent(p)+" "+name+" (ms):", percentile(values, p))
		}
	}
	heading(&b, "", "=")
	_, err := io.WriteString(w, b.String())
	return err
}

// heading writes a line with the title in the middle of fill.
func heading(b *strings.Builder, title, fill string) {
	left := (reportWidth - len(title)) / 2
	b.WriteString(strings.Repeat(fill, left) + title + strings.Repeat(fill, reportWidth-len(title)-left) + "\n")
}
