// Package metric counts what the engine and the server do, under vLLM's names with vLLM's buckets wherever vLLM has the
// metric, so that its dashboards, autoscalers and routers work. One table describes every metric; the registry, the page
// GET /metrics and docs/metrics.md are made from it.
//
// Gauges and counters that the scheduler keeps are read from one snapshot of the engine for each scrape, so a page costs
// the engine one short lock; routers scrape twenty times a second.
package metric

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/kvevent"
	"github.com/quire-ai/quire/sched"
)

// Source is the engine as the metrics read it. *engine.Engine is one.
type Source interface {
	Snapshot() engine.Snapshot
	Health() engine.Health
}

// Options says what the metrics describe.
type Options struct {
	Engine      Source
	Model       string // label model_name
	MaxModelLen int    // bounds the buckets of token counts
	Cache       CacheInfo
	Tiers       func() []connector.TierStats // of the tiers behind the KV cache; nil if there are none
	Events      func() kvevent.Stats         // of the stream of KV events; nil if there is none
}

// CacheInfo is the shape of the KV cache, shown as labels.
type CacheInfo struct {
	BlockSize, Blocks int
	DType             string
	PrefixCaching     bool
}

// Metrics are the metrics of one server. They are made before the engine, which is given Observer, and described after it,
// when model and cache are known and before the first request. From then on they are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	firstToken, nextToken, perToken             prometheus.Observer
	e2e, queue, inference, prefill, decode      prometheus.Observer
	promptTokens, outputTokens, maxTokens       prometheus.Observer
	longest, choices                            prometheus.Observer
	computedTokens, iterationTokens, stepTime   prometheus.Observer
	promptTotal, computedTotal, hitTotal, saved prometheus.Counter
	loadedTotal                                 prometheus.Counter
	finished                                    [sched.ReasonCacheThreshold + 1]prometheus.Counter
	httpRequests                                *prometheus.CounterVec
	httpDuration                                *prometheus.HistogramVec
	page                                        page
}

// New returns metrics that are to be described.
func New() *Metrics { return &Metrics{page: page{fresh: pageFresh}} }

// Describe says what is measured. It is called once.
func (m *Metrics) Describe(o Options) {
	b := newBuilder(o)
	m.registry = b.registry
	m.firstToken = b.histogram("vllm:time_to_first_token_seconds")
	m.nextToken = b.histogram("vllm:inter_token_latency_seconds")
	m.perToken = b.histogram("vllm:request_time_per_output_token_seconds")
	m.e2e = b.histogram("vllm:e2e_request_latency_seconds")
	m.queue = b.histogram("vllm:request_queue_time_seconds")
	m.inference = b.histogram("vllm:request_inference_time_seconds")
	m.prefill = b.histogram("vllm:request_prefill_time_seconds")
	m.decode = b.histogram("vllm:request_decode_time_seconds")
	m.promptTokens = b.histogram("vllm:request_prompt_tokens")
	m.outputTokens = b.histogram("vllm:request_generation_tokens")
	m.longest = b.histogram("vllm:request_max_num_generation_tokens")
	m.choices = b.histogram("vllm:request_params_n")
	m.maxTokens = b.histogram("vllm:request_params_max_tokens")
	m.computedTokens = b.histogram("vllm:request_prefill_kv_computed_tokens")
	m.iterationTokens = b.histogram("vllm:iteration_tokens_total")
	m.stepTime = b.histogram("quire_step_duration_seconds")
	m.promptTotal = b.counters("vllm:prompt_tokens_total").WithLabelValues()
	m.saved = b.counters("vllm:prompt_tokens_cached_total").WithLabelValues()
	m.httpRequests = b.counters("http_requests_total")
	m.httpDuration = b.histograms("http_request_duration_seconds")
	bySource := b.counters("vllm:prompt_tokens_by_source_total")
	m.computedTotal, m.hitTotal = bySource.WithLabelValues("local_compute"), bySource.WithLabelValues("local_cache_hit")
	m.loadedTotal = bySource.WithLabelValues("external_kv_transfer")
	success := b.counters("vllm:request_success_total")
	for reason := sched.ReasonStop; reason <= sched.ReasonCacheThreshold; reason++ {
		m.finished[reason] = success.WithLabelValues(reason.String())
	}
	info := o.Cache
	b.gauges("vllm:cache_config_info").WithLabelValues(strconv.Itoa(info.BlockSize), strconv.Itoa(info.Blocks), "0", info.DType,
		strconv.FormatBool(info.PrefixCaching)).Set(1)
	b.registry.MustRegister(b.liveMetrics(o.Engine), b.tierMetrics(o.Tiers), b.eventMetrics(o.Events), newProcess())
	b.checkComplete()
}

// Requested counts an HTTP request that was answered. path is the pattern that matched, so that labels are bounded.
func (m *Metrics) Requested(method, path string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
	default:
		method = "other"
	}
	class := "none" // the client left before there was an answer
	if status > 0 {
		class = fmt.Sprintf("%dxx", status/100)
	}
	m.httpRequests.WithLabelValues(method, path, class).Inc()
	m.httpDuration.WithLabelValues(method, path).Observe(took.Seconds())
}

// Asked counts the choices that a request asks for.
func (m *Metrics) Asked(choices int) { m.choices.Observe(float64(choices)) }

// Observer counts what an engine reports. All of it is a few additions: the engine's loop calls it.
func (m *Metrics) Observer() engine.Observer {
	return engine.Observer{
		Step: func(i engine.StepInfo) {
			m.iterationTokens.Observe(float64(i.Tokens))
			m.stepTime.Observe(i.Duration.Seconds())
		},
		FirstToken: m.prefilled,
		NextToken:  func(d time.Duration) { m.nextToken.Observe(d.Seconds()) },
		Finished:   m.requestFinished,
	}
}

// prefilled counts a request whose prompt has been computed.
func (m *Metrics) prefilled(f engine.FirstTokenInfo) {
	m.firstToken.Observe(f.Wait.Seconds())
	m.promptTotal.Add(float64(f.PromptTokens))
	m.computedTotal.Add(float64(f.PromptTokens - f.CachedTokens))
	m.hitTotal.Add(float64(f.CachedTokens - f.LoadedTokens))
	m.loadedTotal.Add(float64(f.LoadedTokens))
	m.saved.Add(float64(f.CachedTokens))
}

// requestFinished counts a request at its end. Times it did not get to are not counted.
func (m *Metrics) requestFinished(f engine.FinishInfo) {
	if c := m.finished[f.Reason]; c != nil {
		c.Inc()
	}
	m.e2e.Observe(f.End.Sub(f.Arrival).Seconds())
	if f.MaxTokens > 0 {
		m.maxTokens.Observe(float64(f.MaxTokens))
	}
	if f.Scheduled.IsZero() {
		return
	}
	m.queue.Observe(f.Scheduled.Sub(f.Arrival).Seconds())
	if f.FirstToken.IsZero() {
		return
	}
	m.promptTokens.Observe(float64(f.PromptTokens))
	m.outputTokens.Observe(float64(f.OutputTokens))
	m.longest.Observe(float64(f.OutputTokens))
	m.computedTokens.Observe(float64(f.PromptTokens - f.CachedTokens))
	m.prefill.Observe(f.FirstToken.Sub(f.Scheduled).Seconds())
	m.decode.Observe(f.LastToken.Sub(f.FirstToken).Seconds())
	m.inference.Observe(f.LastToken.Sub(f.Scheduled).Seconds())
	if f.OutputTokens > 1 {
		m.perToken.Observe(f.LastToken.Sub(f.FirstToken).Seconds() / float64(f.OutputTokens-1))
	}
}
