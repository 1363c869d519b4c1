package metric

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/invariant"
)

// builder makes metrics from the table, each once.
type builder struct {
	registry *prometheus.Registry
	specs    map[string]spec
	made     map[string]bool
	labels   prometheus.Labels
	maxLen   int
}

func newBuilder(o Options) *builder {
	b := &builder{
		registry: prometheus.NewRegistry(), specs: map[string]spec{}, made: map[string]bool{},
		labels: prometheus.Labels{"model_name": o.Model, "engine": "0"}, maxLen: o.MaxModelLen,
	}
	for _, s := range table() {
		b.specs[s.name] = s
	}
	return b
}

// take finds the spec of a metric that is about to be made.
func (b *builder) take(name string, k kind) spec {
	s, ok := b.specs[name]
	invariant.Check(ok && s.kind == k, "metric %s is not a %s of the table", name, k)
	invariant.Check(!b.made[name], "metric %s is made twice", name)
	b.made[name] = true
	return s
}

// checkComplete holds that every row of the table was made.
func (b *builder) checkComplete() {
	for name := range b.specs {
		invariant.Check(b.made[name], "metric %s of the table is not made", name)
	}
}

// constLabels are the labels that every series of a metric has. HTTP metrics have none, as in vLLM.
func (b *builder) constLabels(s spec) prometheus.Labels {
	if strings.HasPrefix(s.name, "http_") {
		return nil
	}
	return b.labels
}

func (b *builder) counters(name string) *prometheus.CounterVec {
	s := b.take(name, counter)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: s.name, Help: s.help, ConstLabels: b.constLabels(s)}, s.labels)
	b.registry.MustRegister(v)
	return v
}

func (b *builder) gauges(name string) *prometheus.GaugeVec {
	s := b.take(name, gauge)
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: s.name, Help: s.help, ConstLabels: b.constLabels(s)}, s.labels)
	b.registry.MustRegister(v)
	return v
}

func (b *builder) histograms(name string) *prometheus.HistogramVec {
	s := b.take(name, histogram)
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: s.name, Help: s.help, ConstLabels: b.constLabels(s), Buckets: s.buckets.upTo(b.maxLen),
	}, s.labels)
	b.registry.MustRegister(v)
	return v
}

func (b *builder) histogram(name string) prometheus.Observer {
	return b.histograms(name).WithLabelValues()
}

// upTo gives the bounds, for a model whose context is max tokens.
func (k buckets) upTo(max int) []float64 {
	if !k.upTo125 {
		return k.bounds
	}
	var out []float64
	for unit := 1; ; unit *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*unit > max {
				return out
			}
			out = append(out, float64(m*unit))
		}
	}
}

// liveMetrics are read from a snapshot of the engine at each scrape. It is a prometheus.Collector.
type liveMetrics struct {
	source Source
	values []liveValue
}

// liveValue is one series of liveMetrics.
type liveValue struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	labels []string
	read   func(*engine.Snapshot) float64
}

// liveMetrics makes the metrics that the scheduler counts itself.
func (b *builder) liveMetrics(s Source) *liveMetrics {
	m := &liveMetrics{source: s}
	add := func(name string, k kind, read func(*engine.Snapshot) float64) {
		m.values = append(m.values, liveValue{desc: b.desc(b.take(name, k)), kind: valueType(k), read: read})
	}
	add("vllm:num_requests_running", gauge, func(s *engine.Snapshot) float64 { return float64(s.Running) })
	add("vllm:num_requests_waiting", gauge, func(s *engine.Snapshot) float64 { return float64(s.Waiting) })
	add("vllm:kv_cache_usage_perc", gauge, func(s *engine.Snapshot) float64 {
		return 1 - float64(s.FreeBlocks)/float64(max(s.UsableBlocks, 1))
	})
	add("vllm:num_preemptions_total", counter, func(s *engine.Snapshot) float64 { return float64(s.Preemptions) })
	add("vllm:prefix_cache_queries_total", counter, func(s *engine.Snapshot) float64 { return float64(s.Prefix.Queried) })
	add("vllm:prefix_cache_hits_total", counter, func(s *engine.Snapshot) float64 { return float64(s.Prefix.Hit) })
	add("vllm:external_prefix_cache_queries_total", counter, func(s *engine.Snapshot) float64 { return float64(s.External.Queried) })
	add("vllm:external_prefix_cache_hits_total", counter, func(s *engine.Snapshot) float64 { return float64(s.External.Hit) })
	add("vllm:generation_tokens_total", counter, func(s *engine.Snapshot) float64 { return float64(s.GeneratedTokens) })
	add("quire_recomputed_tokens_total", counter, func(s *engine.Snapshot) float64 { return float64(s.RecomputedTokens) })
	add("quire_steps_total", counter, func(s *engine.Snapshot) float64 { return float64(s.Steps) })
	add("quire_failed_steps_total", counter, func(s *engine.Snapshot) float64 { return float64(s.FailedSteps) })
	add("quire_kv_blocks_free", gauge, func(s *engine.Snapshot) float64 { return float64(s.FreeBlocks) })
	add("quire_kv_blocks_cached", gauge, func(s *engine.Snapshot) float64 { return float64(s.CachedKeys) })
	add("quire_healthy", gauge, nil)

	byReason := b.desc(b.take("vllm:num_requests_waiting_by_reason", gauge))
	m.values = append(m.values,
		liveValue{byReason, prometheus.GaugeValue, []string{"capacity"}, func(s *engine.Snapshot) float64 {
			return float64(max(0, s.Waiting-s.Deferred))
		}},
		liveValue{byReason, prometheus.GaugeValue, []string{"deferred"}, func(s *engine.Snapshot) float64 {
			return float64(min(s.Deferred, s.Waiting))
		}})
	return m
}

func (b *builder) desc(s spec) *prometheus.Desc {
	return prometheus.NewDesc(s.name, s.help, s.labels, b.constLabels(s))
}

func valueType(k kind) prometheus.ValueType {
	if k == counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// Describe implements prometheus.Collector.
func (m *liveMetrics) Describe(out chan<- *prometheus.Desc) {
	seen := map[*prometheus.Desc]bool{}
	for _, v := range m.values {
		if !seen[v.desc] {
			seen[v.desc] = true
			out <- v.desc
		}
	}
}

// Collect implements prometheus.Collector.
func (m *liveMetrics) Collect(out chan<- prometheus.Metric) {
	snapshot, healthy := m.source.Snapshot(), 0.0
	if s := m.source.Health().Status; s == engine.OK || s == engine.Draining {
		healthy = 1
	}
	for _, v := range m.values {
		value := healthy
		if v.read != nil {
			value = v.read(&snapshot)
		}
		out <- prometheus.MustNewConstMetric(v.desc, v.kind, value, v.labels...)
	}
}
