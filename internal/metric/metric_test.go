package metric

import (
	"errors"
	"flag"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/kvevent"
	"github.com/quire-ai/quire/sched"
)

var update = flag.Bool("update", false, "write docs/metrics.md instead of comparing it")

// TestManual holds docs/metrics.md together with the table.
func TestManual(t *testing.T) {
	const file = "../../docs/metrics.md"
	want := Manual()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s does not match the table: run make generate", file)
	}
}

// still is an engine that stands in one state.
type still struct {
	snapshot engine.Snapshot
	status   engine.Status
}

func (s still) Snapshot() engine.Snapshot { return s.snapshot }
func (s still) Health() engine.Health     { return engine.Health{Status: s.status} }

// scrape returns the lines of one family of metrics without labels that all share.
func scrape(t *testing.T, m *Metrics, family string) []string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(rec.Body.String())); err != nil {
		t.Fatalf("the page is not Prometheus text: %v", err)
	}
	shared := strings.NewReplacer(`{engine="0",model_name="m"}`, "",
		`engine="0",`, "", `,engine="0"`, "", `,model_name="m"`, "", `model_name="m",`, "")
	var lines []string
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, family) {
			lines = append(lines, strings.TrimSpace(shared.Replace(line)))
		}
	}
	return lines
}

func newMetrics(s Source) *Metrics {
	m := New()
	m.Describe(Options{
		Engine: s, Model: "m", MaxModelLen: 60, Cache: CacheInfo{BlockSize: 16, Blocks: 256, DType: "float16", PrefixCaching: true},
	})
	return m
}

// TestLive holds what is read from the engine.
func TestLive(t *testing.T) {
	s := still{status: engine.OK}
	s.snapshot.Stats = sched.Stats{
		Running: 3, Deferred: 1, FreeBlocks: 64, UsableBlocks: 256, CachedKeys: 9,
		Counters: sched.Counters{Preemptions: 5, GeneratedTokens: 77, RecomputedTokens: 11, Prefix: sched.Lookups{Queried: 100, Hit: 40}},
	}
	s.snapshot.Waiting = 4
	m := newMetrics(s)
	for family, want := range map[string][]string{
		"vllm:num_requests_running": {"vllm:num_requests_running 3"},
		"vllm:num_requests_waiting_b": {
			`vllm:num_requests_waiting_by_reason{reason="capacity"} 3`,
			`vllm:num_requests_waiting_by_reason{reason="deferred"} 1`,
		},
		"vllm:num_requests_waiting{": {"vllm:num_requests_waiting 4"},
		"vllm:kv_cache_usage_perc":   {"vllm:kv_cache_usage_perc 0.75"},
		"vllm:num_preemptions":       {"vllm:num_preemptions_total 5"},
		"vllm:prefix_cache":          {"vllm:prefix_cache_hits_total 40", "vllm:prefix_cache_queries_total 100"},
		"vllm:generation_tokens":     {"vllm:generation_tokens_total 77"},
		"quire_healthy":              {"quire_healthy 1"},
		"vllm:cache_config_info": {`vllm:cache_config_info{block_size="16",cache_dtype="float16",enable_prefix_caching="true",` +
			`num_cpu_blocks="0",num_gpu_blocks="256"} 1`},
	} {
		if diff := cmp.Diff(want, scrape(t, m, family)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
	if got := scrape(t, newMetrics(still{status: engine.Stalled}), "quire_healthy"); !cmp.Equal(got, []string{"quire_healthy 0"}) {
		t.Errorf("stalled: %v", got)
	}
}

// TestFinished holds what the end of a request counts, and that a request which never ran counts as little as it did.
func TestFinished(t *testing.T) {
	m := newMetrics(still{})
	o := m.Observer()
	start := time.Unix(1000, 0)
	o.Finished(engine.FinishInfo{
		Finish:    engine.Finish{Reason: sched.ReasonLength, PromptTokens: 30, CachedTokens: 16, OutputTokens: 5},
		MaxTokens: 5, Arrival: start, Scheduled: start.Add(time.Second), FirstToken: start.Add(2 * time.Second),
		LastToken: start.Add(4 * time.Second), End: start.Add(4 * time.Second),
	})
	o.Finished(engine.FinishInfo{
		Finish: engine.Finish{Reason: sched.ReasonError, PromptTokens: 9}, Err: errors.New("x"), Arrival: start, End: start.Add(time.Second),
	})
	o.FirstToken(engine.FirstTokenInfo{Wait: 2 * time.Second, PromptTokens: 30, CachedTokens: 16})
	o.Step(engine.StepInfo{Tokens: 30, Duration: time.Millisecond})
	m.Asked(2)
	for family, want := range map[string][]string{
		"vllm:prompt_tokens_total":  {"vllm:prompt_tokens_total 30"},
		"vllm:prompt_tokens_cached": {"vllm:prompt_tokens_cached_total 16"},
		"vllm:request_success": {
			`vllm:request_success_total{finished_reason="abort"} 0`,
			`vllm:request_success_total{finished_reason="cache_threshold"} 0`,
			`vllm:request_success_total{finished_reason="error"} 1`,
			`vllm:request_success_total{finished_reason="length"} 1`,
			`vllm:request_success_total{finished_reason="stop"} 0`,
		},
		"vllm:e2e_request_latency_seconds_sum":         {"vllm:e2e_request_latency_seconds_sum 5"},
		"vllm:request_queue_time_seconds_sum":          {"vllm:request_queue_time_seconds_sum 1"},
		"vllm:request_prefill_time_seconds_sum":        {"vllm:request_prefill_time_seconds_sum 1"},
		"vllm:request_decode_time_seconds_sum":         {"vllm:request_decode_time_seconds_sum 2"},
		"vllm:request_inference_time_seconds_sum":      {"vllm:request_inference_time_seconds_sum 3"},
		"vllm:request_time_per_output_token_seconds_s": {"vllm:request_time_per_output_token_seconds_sum 0.5"},
		"vllm:time_to_first_token_seconds_count":       {"vllm:time_to_first_token_seconds_count 1"},
		"vllm:request_params_n_sum":                    {"vllm:request_params_n_sum 2"},
		"vllm:iteration_tokens_total_sum":              {"vllm:iteration_tokens_total_sum 30"},
		"vllm:prompt_tokens_by_source_total": {
			`vllm:prompt_tokens_by_source_total{source="external_kv_transfer"} 0`,
			`vllm:prompt_tokens_by_source_total{source="local_cache_hit"} 16`,
			`vllm:prompt_tokens_by_source_total{source="local_compute"} 14`,
		},
		"vllm:request_prompt_tokens_bucket": {
			`vllm:request_prompt_tokens_bucket{le="1"} 0`, `vllm:request_prompt_tokens_bucket{le="2"} 0`,
			`vllm:request_prompt_tokens_bucket{le="5"} 0`, `vllm:request_prompt_tokens_bucket{le="10"} 0`,
			`vllm:request_prompt_tokens_bucket{le="20"} 0`, `vllm:request_prompt_tokens_bucket{le="50"} 1`,
			`vllm:request_prompt_tokens_bucket{le="+Inf"} 1`,
		},
	} {
		if diff := cmp.Diff(want, scrape(t, m, family)); diff != "" {
			t.Errorf("%s: -want +got\n%s", family, diff)
		}
	}
}

// TestPageIsRenderedOnce holds that many routers cost one rendering, and that a page does not grow old.
func TestPageIsRenderedOnce(t *testing.T) {
	m, now := newMetrics(still{}), time.Unix(1000, 0)
	show := func(at time.Time) string {
		body, err := m.render(at)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	first := show(now)
	m.Asked(1)
	if show(now.Add(pageFresh-1)) != first {
		t.Error("a fresh page was rendered again")
	}
	if show(now.Add(pageFresh)) == first {
		t.Error("an old page was served")
	}
}

// TestHTTPLabelsAreBounded holds that a client cannot make new series by inventing methods.
func TestHTTPLabelsAreBounded(t *testing.T) {
	m := newMetrics(still{})
	for _, method := range []string{"GET", "A", "B", "C"} {
		m.Requested(method, "/", 404, time.Second)
	}
	m.Requested("POST", "/v1/completions", 0, time.Second)
	want := []string{
		`http_requests_total{handler="/",method="GET",status="4xx"} 1`, `http_requests_total{handler="/",method="other",status="4xx"} 3`,
		`http_requests_total{handler="/v1/completions",method="POST",status="none"} 1`,
	}
	if diff := cmp.Diff(want, scrape(t, m, "http_requests_total")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// BenchmarkPage is what a router asks for twenty times a second.
func BenchmarkPage(b *testing.B) {
	m := newMetrics(still{status: engine.OK})
	m.page.fresh = 0
	b.ReportAllocs()
	for b.Loop() {
		rec := httptest.NewRecorder()
		m.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		b.ReportMetric(float64(rec.Body.Len()), "bytes/page")
	}
}

// TestTiers: each tier has its series; without tiers there are none.
func TestTiers(t *testing.T) {
	m := New()
	m.Describe(Options{Engine: still{status: engine.OK}, Model: "m", MaxModelLen: 100, Tiers: func() []connector.TierStats {
		return []connector.TierStats{
			{Name: "ram", Loaded: connector.Transfers{Blocks: 7}},
			{Name: "disk", Usage: connector.Usage{Blocks: 3}, Dropped: 5, Failures: map[string]uint64{"corrupt": 2}, Open: true},
		}
	}})
	for family, want := range map[string][]string{
		"quire_kv_tier_hits_total":       {`{tier="disk"} 0`, `{tier="ram"} 7`},
		"quire_kv_tier_blocks":           {`{tier="disk"} 3`, `{tier="ram"} 0`},
		"quire_kv_tier_breaker_open":     {`{tier="disk"} 1`, `{tier="ram"} 0`},
		"quire_kv_tier_failures_total":   {`{cause="corrupt",tier="disk"} 2`},
		"quire_kv_tier_not_stored_total": {`{reason="breaker",tier="disk"} 0`, `{reason="full",tier="disk"} 5`},
	} {
		got := strings.Join(scrape(t, m, family), "\n")
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("%s: %s; want %s in it", family, got, line)
			}
		}
	}
	m = New()
	m.Describe(Options{Engine: still{status: engine.OK}, Model: "m", MaxModelLen: 100})
	if got := scrape(t, m, "quire_kv_tier_blocks"); len(got) != 0 {
		t.Errorf("without tiers: %v", got)
	}
}

// TestEvents: a stream of KV events has its series; without one there are none.
func TestEvents(t *testing.T) {
	m := New()
	m.Describe(Options{Engine: still{}, Model: "m", MaxModelLen: 100, Events: func() kvevent.Stats {
		return kvevent.Stats{Published: 9, Blocks: 8, Subscribers: 7, Behind: 6, Dropped: 5, Overflows: 4, Replayed: 3, Snapshots: 2}
	}})
	want := []string{
		"quire_kv_events_blocks 8", "quire_kv_events_dropped_total 5", "quire_kv_events_overflows_total 4",
		"quire_kv_events_published_total 9", `quire_kv_events_replays_total{answer="ring"} 3`,
		`quire_kv_events_replays_total{answer="snapshot"} 2`, `quire_kv_events_subscribers{state="behind"} 6`,
		`quire_kv_events_subscribers{state="current"} 7`,
	}
	if diff := cmp.Diff(want, scrape(t, m, "quire_kv_events")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if lines := scrape(t, newMetrics(still{}), "quire_kv_events"); len(lines) > 0 {
		t.Errorf("without a stream: %q", lines)
	}
}
