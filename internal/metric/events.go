package metric

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quire-ai/quire/internal/kvevent"
)

// eventMetrics are read from the stream of KV events at each scrape. It is a prometheus.Collector.
type eventMetrics struct {
	read   func() kvevent.Stats // nil when there is none
	values []eventValue
}

// eventValue is one series of eventMetrics.
type eventValue struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	labels []string
	read   func(*kvevent.Stats) uint64
}

// eventMetrics makes the metrics of the stream.
func (b *builder) eventMetrics(read func() kvevent.Stats) *eventMetrics {
	m := &eventMetrics{read: read}
	var desc *prometheus.Desc
	series := func(k kind, read func(*kvevent.Stats) uint64, labels ...string) {
		m.values = append(m.values, eventValue{desc, valueType(k), labels, read})
	}
	one := func(name string, k kind, read func(*kvevent.Stats) uint64) {
		desc = b.desc(b.take(name, k))
		series(k, read)
	}
	one("quire_kv_events_published_total", counter, func(s *kvevent.Stats) uint64 { return s.Published })
	one("quire_kv_events_blocks", gauge, func(s *kvevent.Stats) uint64 { return uint64(s.Blocks) })
	one("quire_kv_events_dropped_total", counter, func(s *kvevent.Stats) uint64 { return s.Dropped })
	one("quire_kv_events_overflows_total", counter, func(s *kvevent.Stats) uint64 { return s.Overflows })
	desc = b.desc(b.take("quire_kv_events_subscribers", gauge))
	series(gauge, func(s *kvevent.Stats) uint64 { return uint64(s.Subscribers) }, "current")
	series(gauge, func(s *kvevent.Stats) uint64 { return uint64(s.Behind) }, "behind")
	desc = b.desc(b.take("quire_kv_events_replays_total", counter))
	series(counter, func(s *kvevent.Stats) uint64 { return s.Replayed }, "ring")
	series(counter, func(s *kvevent.Stats) uint64 { return s.Snapshots }, "snapshot")
	return m
}

// Describe implements prometheus.Collector.
func (m *eventMetrics) Describe(out chan<- *prometheus.Desc) {
	for i := range m.values {
		if i == 0 || m.values[i].desc != m.values[i-1].desc {
			out <- m.values[i].desc
		}
	}
}

// Collect implements prometheus.Collector.
func (m *eventMetrics) Collect(out chan<- prometheus.Metric) {
	if m.read == nil {
		return
	}
	stats := m.read()
	for _, v := range m.values {
		out <- prometheus.MustNewConstMetric(v.desc, v.kind, float64(v.read(&stats)), v.labels...)
	}
}
