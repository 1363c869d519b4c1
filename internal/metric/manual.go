package metric

import (
	"fmt"
	"strconv"
	"strings"
)

//go:generate go test -run TestManual -update .

// Manual writes docs/metrics.md from the table.
func Manual() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\n" +
		"What `GET /metrics` shows, in Prometheus' text form. Names beginning with `vllm:` have vLLM's meaning and buckets, so that\n" +
		"dashboards, autoscalers and routers made for vLLM work; they and `quire_` metrics carry the labels `model_name` and\n" +
		"`engine` (always `0`). The page also has the `process_` metrics of the Prometheus client.\n\n" +
		"This page is written by `make generate` from `internal/metric`; a test compares them.\n\n" +
		"| metric | kind | unit | labels | meaning |\n|---|---|---|---|---|\n")
	for _, s := range table() {
		labels := ""
		if len(s.labels) > 0 {
			labels = "`" + strings.Join(s.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s%s |\n", s.name, s.kind, s.unit, labels, s.help, s.buckets.manual())
	}
	return b.String()
}

// manual lists the bounds of a histogram.
func (k buckets) manual() string {
	if k.upTo125 {
		return " Buckets: 1, 2, 5, 10, 20, 50 … up to the context."
	}
	if len(k.bounds) == 0 {
		return ""
	}
	list := make([]string, len(k.bounds))
	for i, bound := range k.bounds {
		list[i] = strconv.FormatFloat(bound, 'g', -1, 64)
	}
	return " Buckets: " + strings.Join(list, ", ") + "."
}
