package server

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/metric"
	"github.com/quire-ai/quire/internal/openai"
)

// idsJSON is a prompt of n token ids, all the same.
func idsJSON(id, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d,", id), n), ",") + "]"
}

// usageOf joins the choices of an answer, streamed or not, and returns its text, finish reason and usage.
func usageOf(t *testing.T, body string) (text, finish string, usage openai.Usage) {
	t.Helper()
	text, finish = answerOf(t, body)
	take := func(data []byte) {
		r, err := openai.DecodeReply(data)
		if err != nil {
			t.Fatalf("answer %s: %v", data, err)
		}
		if u := r.Usage; u != nil {
			usage = openai.Usage{PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens, CachedTokens: u.Details.CachedTokens}
		}
	}
	if !strings.HasPrefix(body, "data: ") {
		take([]byte(body))
		return text, finish, usage
	}
	for data, err := range openai.Events(strings.NewReader(body)) {
		if err != nil {
			t.Fatal(err)
		}
		take(data)
	}
	return text, finish, usage
}

// TestCacheHitThreshold (vLLM RFC #24256): a request of which too little is cached gives an answer without a token, and with
// threshold 0 the same request runs. llm-d's shared-storage sidecar does just that.
func TestCacheHitThreshold(t *testing.T) {
	f := newFixture(t, setup{})
	f.play("AB", eosPiece)
	f.do("POST", "/v1/completions", `{"prompt":`+idsJSON(7, 64)+`}`)
	f.idle()
	const stream = `,"stream":true,"stream_options":{"include_usage":true}`
	for _, tc := range []struct {
		prompt    string
		threshold float64
		text      string
		finish    string
		cached    int
	}{
		{idsJSON(7, 64), 0.75, "AB", "stop", 48}, // the last block is computed in any case
		{idsJSON(7, 64), 0.76, "", "cache_threshold", 48},
		{idsJSON(8, 64), 0.01, "", "cache_threshold", 0},
		{idsJSON(7, 64), 1, "", "cache_threshold", 48},
		{idsJSON(9, 64), 0, "AB", "stop", 0},
	} {
		for i, form := range []string{"", stream} {
			prompt := tc.prompt
			if tc.threshold == 0 {
				prompt = idsJSON(10+i, 64) // what ran is cached
			}
			body := fmt.Sprintf(`{"prompt":%s,"cache_hit_threshold":%v%s}`, prompt, tc.threshold, form)
			text, finish, usage := usageOf(t, f.do("POST", "/v1/completions", body).Body.String())
			if text != tc.text || finish != tc.finish || usage.PromptTokens != 64 || usage.CachedTokens != tc.cached ||
				(finish == "cache_threshold") != (usage.CompletionTokens == 0) {
				t.Errorf("threshold %v%s: %q, %s, usage %+v; want %q, %s, 64 tokens, %d cached",
					tc.threshold, form, text, finish, usage, tc.text, tc.finish, tc.cached)
			}
		}
	}
	for _, form := range []string{"", stream} {
		body := `{"messages":[{"role":"user","content":"hello"}],"cache_hit_threshold":0.5` + form + `}`
		text, finish, usage := usageOf(t, f.do("POST", "/v1/chat/completions", body).Body.String())
		if text != "" || finish != "cache_threshold" || usage.PromptTokens == 0 || usage.CompletionTokens != 0 {
			t.Errorf("chat%s: %q, %s, usage %+v", form, text, finish, usage)
		}
	}
	f.idle()
	page := f.do("GET", "/metrics", "").Body.String()
	if want := `vllm:request_success_total{engine="0",finished_reason="cache_threshold",model_name="toy"} 8`; !strings.Contains(page, want) {
		t.Errorf("metrics without %s", want)
	}
}

// TestTransferParams: a router's kv_transfer_params do not hinder the answer; the header and, once, the log say that they
// mean nothing.
func TestTransferParams(t *testing.T) {
	f := newFixture(t, setup{})
	f.play("AB", eosPiece)
	for range 2 {
		rec := f.do("POST", "/v1/completions", `{"prompt":"x","kv_transfer_params":{"do_remote_decode":true,"remote_host":null}}`)
		if text, finish := answerOf(t, rec.Body.String()); text != "AB" || finish != "stop" {
			t.Errorf("answer %q, %s", text, finish)
		}
		if h := rec.Header().Get("X-Quire-Warning"); h != transferIgnored {
			t.Errorf("warning %q", h)
		}
	}
	if n := strings.Count(f.logs.String(), "kv_transfer_params is ignored"); n != 1 {
		t.Errorf("the log says so %d times, want once", n)
	}
	if h := f.do("POST", "/v1/completions", `{"prompt":"x","kv_transfer_params":null}`).Header().Get("X-Quire-Warning"); h != "" {
		t.Errorf("null is warned of: %q", h)
	}
}

// TestUsageCountsEveryTier: cached_tokens counts what comes from host memory, from the disk after a restart and from a server
// that another replica filled, and so do vLLM's metrics.
func TestUsageCountsEveryTier(t *testing.T) {
	shared := miniredis.RunT(t)
	dir := t.TempDir()
	for _, tc := range []struct {
		name  string
		tiers llm.Tiers
		fill  int // prompts served first
		again bool
	}{
		{"ram", llm.Tiers{RAM: 64 << 20}, 3, false},
		{"disk", llm.Tiers{RAM: -1, Disk: dir, DiskBytes: 64 << 20}, 1, true},
		{"valkey", llm.Tiers{RAM: -1, Valkey: "redis://" + shared.Addr()}, 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, m, end := tinyServer(t, tc.tiers)
			for i := range tc.fill {
				ask(t, s, i)
			}
			if tc.again {
				end()
				s, m, end = tinyServer(t, tc.tiers)
			}
			usage := ask(t, s, 0)
			const want = 192 // of 200: whole blocks, of valkey's chunks three
			if usage.PromptTokens != 200 || usage.CachedTokens != want {
				t.Errorf("usage %+v, want %d cached of 200", usage, want)
			}
			rec := httptest.NewRecorder()
			m.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
			page := rec.Body.String()
			computed := 200 - want
			if !tc.again {
				computed += 200 * tc.fill
			}
			for _, line := range []string{
				`vllm:external_prefix_cache_hits_total{engine="0",model_name="tiny"} 192`,
				`vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="external_kv_transfer"} 192`,
				fmt.Sprintf(`vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_compute"} %d`, computed),
				`vllm:prompt_tokens_cached_total{engine="0",model_name="tiny"} 192`,
				fmt.Sprintf(`quire_kv_tier_hits_total{engine="0",model_name="tiny",tier="%s"} 12`, tc.name),
			} {
				if !strings.Contains(page, line+"\n") {
					t.Errorf("metrics without %s", line)
				}
			}
			end()
		})
	}
}

// tinyServer serves a tiny model with tiers behind a pool of one prompt.
func tinyServer(t *testing.T, tiers llm.Tiers) (*Server, *metric.Metrics, func()) {
	t.Helper()
	metrics := metric.New()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	o := llm.Options{
		Model:         filepath.Join("..", "model", "testdata", "tiny", "llama_gqa", "llama_gqa-f16.gguf"),
		KVCacheTokens: 256, Threads: 1, Tiers: tiers, Log: log,
	}
	o.Engine.Observer = metrics.Observer()
	m, err := llm.Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	metrics.Describe(metric.Options{Engine: m.Engine, Tiers: m.Tiers.Stats, Model: "tiny", MaxModelLen: m.MaxModelLen})
	s := New(Options{Model: m, MaxRequestBytes: 1 << 20, StreamInterval: 1, Metrics: metrics, Log: log})
	return s, metrics, func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// ask sends the i-th prompt, of 200 tokens.
func ask(t *testing.T, s *Server, i int) openai.Usage {
	t.Helper()
	body := fmt.Appendf(nil, `{"prompt":%s,"max_tokens":2,"ignore_eos":true}`, idsJSON(5+i, 200))
	r := httptest.NewRequest("POST", "/v1/completions", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	_, _, usage := usageOf(t, rec.Body.String())
	return usage
}
