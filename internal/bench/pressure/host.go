package pressure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/quire-ai/quire/internal/bench"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/metric"
	"github.com/quire-ai/quire/internal/server"
)

const (
	logInterval = time.Second      // between throughput lines of the server under test
	stallAfter  = 30 * time.Second // as quire serve has it
)

// config is how the server under test is set up.
type config struct {
	BlockSize     int  `json:"block_size"`
	Budget        int  `json:"max_num_batched_tokens"`
	PrefixCaching bool `json:"prefix_caching"`
}

// String gives the setting in one line.
func (c config) String() string {
	cache := "off"
	if c.PrefixCaching {
		cache = "on"
	}
	return fmt.Sprintf("block size %d, budget %d, prefix cache %s", c.BlockSize, c.Budget, cache)
}

// host is a server on the loopback with the model behind it, both of this process.
type host struct {
	model    *llm.Model
	target   *bench.Target
	recorder *recorder
	log      *logBook
	stop     context.CancelFunc
	stopped  chan error // holds Serve's result when it has returned
}

// start loads the model and serves it. The decisions of its scheduler are written to decisions, which may be nil. The
// caller closes the host.
func start(ctx context.Context, base llm.Options, kvTokens int, c config, decisions io.Writer) (*host, error) {
	h := &host{recorder: &recorder{loaded: map[string]bool{}}, log: newLogBook(), stopped: make(chan error, 1)}
	metrics := metric.New()
	o := base
	o.Log = slog.New(h.log)
	o.KVCacheTokens = kvTokens
	o.Engine.Log = o.Log
	o.Engine.LogInterval = logInterval
	o.Engine.StallAfter = stallAfter
	o.Engine.Record = decisions
	o.Engine.Observer = h.recorder.observer(metrics.Observer())
	o.Engine.Sched.BlockSize = c.BlockSize
	o.Engine.Sched.MaxNumBatchedTokens = c.Budget
	o.Engine.Sched.MaxNumSeqs = maxSeqs
	o.Engine.Sched.NoPrefixCaching = !c.PrefixCaching
	o.Engine.Sched.Watermark = llm.DefaultWatermark
	model, err := llm.Load(ctx, o)
	if err != nil {
		return nil, err
	}
	h.model = model
	metrics.Describe(metric.Options{
		Engine: model.Engine, Model: "pressure", MaxModelLen: model.MaxModelLen,
		Cache: metric.CacheInfo{BlockSize: c.BlockSize, Blocks: model.Plan.Blocks, DType: "float16", PrefixCaching: c.PrefixCaching},
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, model.Close())
	}
	s := server.New(server.Options{
		Model: model, MaxRequestBytes: 16 << 20, MaxLogprobs: 20, StreamInterval: 1, Metrics: metrics, Log: o.Log,
	})
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	go func() { h.stopped <- s.Serve(serving, listener, 10*time.Second) }()
	h.target = &bench.Target{
		Client: bench.NewClient(), BaseURL: "http://" + listener.Addr().String(), Backend: bench.Completions,
		Extra: map[string]any{"return_token_ids": true},
	}
	return h, nil
}

// close ends the server, then the model.
func (h *host) close() error {
	h.stop()
	err := <-h.stopped
	h.target.Client.CloseIdleConnections()
	return errors.Join(err, h.model.Close())
}
