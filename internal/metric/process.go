package metric

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// processFresh is how long what the system says of the process is good for: asking costs more than all else on the page.
const processFresh = time.Second

// process collects the process_ metrics of the Prometheus client, at most once in processFresh.
type process struct {
	prometheus.Collector

	mu      sync.Mutex // guards what follows
	metrics []prometheus.Metric
	at      time.Time
}

func newProcess() *process {
	return &process{Collector: collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
}

// Collect implements prometheus.Collector.
func (p *process) Collect(out chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.metrics == nil || now.Sub(p.at) >= processFresh {
		p.metrics, p.at = p.metrics[:0], now
		fresh := make(chan prometheus.Metric)
		go func() { p.Collector.Collect(fresh); close(fresh) }()
		for m := range fresh {
			p.metrics = append(p.metrics, m)
		}
	}
	for _, m := range p.metrics {
		out <- m
	}
}
