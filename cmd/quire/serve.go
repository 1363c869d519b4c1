package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"

	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/config"
	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/kvevent"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/metric"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/internal/server"
	"github.com/quire-ai/quire/sched"
)

// defaultModel is served when none is named: small, free to use, and quick on any machine.
const defaultModel = "smollm2:135m"

// serveCmd serves a model over HTTP.
type serveCmd struct {
	Name         string `arg:"" optional:"" name:"model" placeholder:"MODEL" help:"Same as --model; smollm2:135m by default."`
	config.Serve `embed:""`
}

// Help shows the first steps.
func (serveCmd) Help() string {
	return `Serves the OpenAI API: /v1/chat/completions, /v1/completions, /v1/models, and /metrics and /health beside them.
A model that is not here yet is fetched and verified first.

  quire serve
  quire serve model.gguf --port 9000 --kv-cache-tokens 65536
  quire serve gemma3:270m --host 0.0.0.0 --api-key "$KEY"`
}

// Run serves until a signal comes, then lets running requests end. A second signal ends the process.
func (cmd *serveCmd) Run(ctx context.Context, c *console) error {
	if err := cmd.chooseModel(); err != nil {
		return err
	}
	log := newLogger(c.Err, &cmd.Log)
	if cmd.Exposed() {
		log.Warn("the server can be reached from other machines without a key: --api-key asks for one", slog.String("host", cmd.HTTP.Host))
	}
	options, err := cmd.options(log)
	if err != nil {
		return err
	}
	if options.Catalog, err = bring(ctx, c.Err, options.Model); err != nil { // the long part, before the port is taken
		return err
	}
	l, err := cmd.listen()
	if err != nil {
		return err
	}
	front := server.NewFront(l, log)
	defer front.Close()
	metrics := metric.New()
	options.Engine.Observer = metrics.Observer()
	record, err := cmd.record(options)
	if err != nil {
		return err
	}
	events, err := cmd.openEvents(log)
	if err != nil {
		return errors.Join(err, record())
	}
	if events != nil {
		options.Engine.Observer.KVEvents = events.Publish
	}
	m, err := llm.Load(ctx, *options)
	if err != nil {
		return errors.Join(err, record(), closeEvents(events))
	}
	leaveRoom(m.Plan.Threads)
	err = cmd.serve(ctx, c.Out, front, l.Addr(), m, metrics, events, log)
	return errors.Join(err, m.Close(), record(), closeEvents(events))
}

// chooseModel settles which model is meant.
func (cmd *serveCmd) chooseModel() error {
	switch m := &cmd.Model.Model; {
	case *m == "":
		*m = cmd.Name
	case cmd.Name != "" && cmd.Name != *m:
		return usageError{fmt.Sprintf("two models are named, %s and --model %s: leave one out", cmd.Name, *m)}
	}
	if cmd.Model.Model == "" {
		cmd.Model.Model = defaultModel
	}
	return nil
}

// options turns the configuration into what the packages take.
func (cmd *serveCmd) options(log *slog.Logger) (*llm.Options, error) {
	template, err := readTemplate(cmd.Model.ChatTemplate)
	if err != nil {
		return nil, err
	}
	tiers, err := cmd.tiers()
	if err != nil {
		return nil, err
	}
	s, queue, interval := &cmd.Scheduler, cmd.HTTP.MaxNumQueuedReqs, time.Duration(cmd.Log.LogStatsInterval)
	if queue == 0 {
		queue = math.MaxInt
	}
	if cmd.Log.DisableLogStats {
		interval = -1
	}
	policy := sched.FCFS
	if s.SchedulingPolicy == "priority" {
		policy = sched.Priority
	}
	return &llm.Options{
		Model: cmd.Model.Model, CPU: cmd.CPU.CPU, Threads: cmd.CPU.Threads, MaxModelLen: cmd.Model.MaxModelLen,
		WholeContext: cmd.Cache.DisableHybrid, KVCacheTokens: cmd.Cache.KVCacheTokens, KVCacheMemory: int64(cmd.Cache.KVCacheMemory),
		ChatTemplate: template, Log: log, Tiers: tiers,
		Engine: engine.Config{
			Sched: sched.Config{
				BlockSize: cmd.Cache.BlockSize, MaxNumSeqs: s.MaxNumSeqs, MaxNumBatchedTokens: s.MaxNumBatchedTokens, Policy: policy,
				NoChunkedPrefill: !s.EnableChunkedPrefill, LongPrefillThreshold: s.LongPrefillTokenThreshold,
				NoPrefixCaching: !cmd.Cache.EnablePrefixCaching, Watermark: s.Watermark,
			},
			MaxQueuedRequests: queue, StallAfter: time.Duration(cmd.HTTP.StallTimeout), LogInterval: interval,
		},
	}, nil
}

// listen takes the port, for HTTP or HTTPS.
func (cmd *serveCmd) listen() (net.Listener, error) {
	address := net.JoinHostPort(cmd.HTTP.Host, strconv.Itoa(cmd.HTTP.Port))
	if cmd.HTTP.SSLCertfile == "" {
		return net.Listen("tcp", address)
	}
	certificate, err := tls.LoadX509KeyPair(cmd.HTTP.SSLCertfile, cmd.HTTP.SSLKeyfile)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	return tls.Listen("tcp", address, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
}

// record opens the file of --record-schedule, if there is one; close ends it.
func (cmd *serveCmd) record(o *llm.Options) (end func() error, err error) {
	if cmd.Log.RecordSchedule == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(cmd.Log.RecordSchedule)
	if err != nil {
		return nil, err
	}
	o.Engine.Record = f
	return f.Close, nil
}

// serve tells where the model is served, and serves it.
func (cmd *serveCmd) serve(
	ctx context.Context, out io.Writer, front *server.Front, addr net.Addr, m *llm.Model, metrics *metric.Metrics,
	events *kvevent.Stream, log *slog.Logger,
) error {
	names := cmd.Model.ServedModelName
	if len(names) == 0 {
		names = []string{m.Name}
	}
	var tiers func() []connector.TierStats
	if m.Tiers != nil {
		tiers = m.Tiers.Stats
	}
	var eventStats func() kvevent.Stats
	if events != nil {
		eventStats = events.Stats
		beginEvents(events, cmd.Events.Events(), addr, m, names[0], log)
	}
	metrics.Describe(metric.Options{
		Engine: m.Engine, Tiers: tiers, Events: eventStats, Model: names[0], MaxModelLen: m.MaxModelLen,
		Cache: metric.CacheInfo{
			BlockSize: m.Plan.BlockSize, Blocks: m.Plan.Blocks, DType: "float16", PrefixCaching: cmd.Cache.EnablePrefixCaching,
		},
	})
	if cmd.Model.GenerationConfig == "vllm" {
		m.Sampling = sample.Default()
	}
	s := server.New(server.Options{
		Model: m, Names: names, APIKeys: cmd.HTTP.APIKey, MaxRequestBytes: int64(cmd.HTTP.MaxRequestBytes),
		MaxLogprobs: cmd.Model.MaxLogprobs, Priorities: cmd.Scheduler.SchedulingPolicy == "priority",
		StreamInterval: cmd.HTTP.StreamInterval, DevEndpoints: cmd.HTTP.DevEndpoints,
		Seed: cmd.Model.Seed, LogRequests: cmd.Log.EnableLogRequests,
		Version: version(), Metrics: metrics, Log: log,
	})
	url := "http://" + reachable(addr)
	if cmd.HTTP.SSLCertfile != "" {
		url = "https://" + reachable(addr)
	}
	fmt.Fprint(out, readyText(url, names[0], m.Plan, len(cmd.HTTP.APIKey) > 0))
	return front.Serve(ctx, s, time.Duration(cmd.HTTP.ShutdownTimeout))
}

// leaveRoom lets Go run two goroutines beside the workers, which hold their threads for a whole step: otherwise everything
// else waits for them (docs/decisions/0081-room-beside-workers.md). A GOMAXPROCS that somebody has set is left alone.
func leaveRoom(workers int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), workers+2))
	}
}

// readyText says what is served where, and shows how to ask.
func readyText(url, name string, plan llm.MemoryPlan, key bool) string {
	header := ""
	if key {
		header = " -H \"Authorization: Bearer $KEY\""
	}
	return fmt.Sprintf(`%s
Serving %s on %s

  curl -N %s/v1/chat/completions%s -H 'Content-Type: application/json' \
    -d '{"model": "%s", "messages": [{"role": "user", "content": "Hello!"}], "stream": true}'

`, plan, name, url, url, header, name)
}

// reachable is an address under which this machine reaches the server.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

// readTemplate returns the source of a chat template: a file's, or the text itself if it holds a brace.
func readTemplate(template string) (string, error) {
	if template == "" || strings.ContainsAny(template, "{\n") {
		return template, nil
	}
	data, err := os.ReadFile(template)
	if err != nil {
		return "", fmt.Errorf("read chat template: %w", err)
	}
	return string(data), nil
}

// bring fetches the model that ref means unless it is here, shows how on w, and returns the catalog that has it.
func bring(ctx context.Context, w io.Writer, ref string) (*catalog.Catalog, error) {
	cfg, err := catalog.ConfigFromEnv(os.Getenv)
	if err != nil {
		return nil, err
	}
	reporter := newPullReporter(w)
	cfg.Reporter = reporter
	_, err = catalog.New(cfg).Resolve(ctx, ref)
	reporter.Close() // before anything else is written to w
	cfg.Reporter = nil
	return catalog.New(cfg), err
}

// newLogger logs to w: in colour on a terminal, as JSON if asked for.
func newLogger(w io.Writer, c *config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo // kong lets no other word pass
	}
	if c.LogJSON {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	}
	f, ok := w.(*os.File)
	return slog.New(tint.NewTextHandler(w, &tint.Options{
		Level: level, TimeFormat: time.DateTime, NoColor: !ok || !term.IsTerminal(int(f.Fd())),
	}))
}
