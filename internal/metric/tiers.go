package metric

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quire-ai/quire/internal/connector"
)

// tierMetrics are read from the tiers behind the KV cache at each scrape. It is a prometheus.Collector.
type tierMetrics struct {
	read   func() []connector.TierStats // nil when there are none
	values []tierValue
	lost   *prometheus.Desc // by reason
	failed *prometheus.Desc // by cause
}

// tierValue is one metric of every tier.
type tierValue struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*connector.TierStats) float64
}

// tierMetrics makes the metrics of tiers.
func (b *builder) tierMetrics(read func() []connector.TierStats) *tierMetrics {
	m := &tierMetrics{read: read}
	add := func(name string, k kind, read func(*connector.TierStats) float64) {
		m.values = append(m.values, tierValue{desc: b.desc(b.take(name, k)), kind: valueType(k), read: read})
	}
	add("quire_kv_tier_blocks", gauge, func(t *connector.TierStats) float64 { return float64(t.Blocks) })
	add("quire_kv_tier_bytes", gauge, func(t *connector.TierStats) float64 { return float64(t.Bytes) })
	add("quire_kv_tier_capacity_bytes", gauge, func(t *connector.TierStats) float64 { return float64(t.Capacity) })
	add("quire_kv_tier_hits_total", counter, func(t *connector.TierStats) float64 { return float64(t.Loaded.Blocks) })
	add("quire_kv_tier_misses_total", counter, func(t *connector.TierStats) float64 { return float64(t.Missed) })
	add("quire_kv_tier_loaded_bytes_total", counter, func(t *connector.TierStats) float64 { return float64(t.Loaded.Bytes) })
	add("quire_kv_tier_load_seconds_total", counter, func(t *connector.TierStats) float64 { return t.Loaded.Time.Seconds() })
	add("quire_kv_tier_stored_bytes_total", counter, func(t *connector.TierStats) float64 { return float64(t.Stored.Bytes) })
	add("quire_kv_tier_store_seconds_total", counter, func(t *connector.TierStats) float64 { return t.Stored.Time.Seconds() })
	add("quire_kv_tier_evictions_total", counter, func(t *connector.TierStats) float64 { return float64(t.Evicted) })
	add("quire_kv_tier_breaker_open", gauge, func(t *connector.TierStats) float64 {
		if t.Open {
			return 1
		}
		return 0
	})
	m.lost = b.desc(b.take("quire_kv_tier_not_stored_total", counter))
	m.failed = b.desc(b.take("quire_kv_tier_failures_total", counter))
	return m
}

// Describe implements prometheus.Collector.
func (m *tierMetrics) Describe(out chan<- *prometheus.Desc) {
	for i := range m.values {
		out <- m.values[i].desc
	}
	out <- m.lost
	out <- m.failed
}

// Collect implements prometheus.Collector.
func (m *tierMetrics) Collect(out chan<- prometheus.Metric) {
	if m.read == nil {
		return
	}
	for _, t := range m.read() {
		for i := range m.values {
			v := &m.values[i]
			out <- prometheus.MustNewConstMetric(v.desc, v.kind, v.read(&t), t.Name)
		}
		out <- prometheus.MustNewConstMetric(m.lost, prometheus.CounterValue, float64(t.Dropped), t.Name, "full")
		out <- prometheus.MustNewConstMetric(m.lost, prometheus.CounterValue, float64(t.Refused), t.Name, "breaker")
		for _, cause := range slices.Sorted(maps.Keys(t.Failures)) {
			out <- prometheus.MustNewConstMetric(m.failed, prometheus.CounterValue, float64(t.Failures[cause]), t.Name, cause)
		}
	}
}
