package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/kvevent"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/internal/zmtp"
	"github.com/quire-ai/quire/sched"
)

// instant computes nothing: every row samples the same token. steps counts plans.
type instant struct {
	outputs []sample.Output
	token   []sample.Token
	steps   int
	target  int
	reached chan struct{}
}

func (x *instant) Begin(sched.RequestID, *sample.Params, []int32) {}
func (x *instant) Close() error                                   { return nil }

func (x *instant) Execute(p *sched.Plan) ([]sample.Output, error) {
	x.outputs = x.outputs[:0]
	for i := range p.Requests {
		out := sample.Output{}
		if p.Requests[i].Sample {
			out.Sampled = x.token
		}
		x.outputs = append(x.outputs, out)
	}
	if x.steps++; x.steps == x.target {
		close(x.reached)
	}
	return x.outputs, nil
}

// The cost of a step beside the model: steady decode of a full house, each token handed to a reader of its own, as on a busy
// server. One iteration is one step.
func BenchmarkDecodeStep(b *testing.B) {
	for _, n := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("running=%d", n), func(b *testing.B) { decodeSteps(b, n, engine.Observer{}) })
	}
}

// The same while KV events are published: each step in sixteen fills a block of every request.
func BenchmarkDecodeStepWithEvents(b *testing.B) {
	for _, n := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("running=%d", n), func(b *testing.B) {
			s, err := kvevent.Open(kvevent.Config{Endpoint: zmtp.Endpoint{Bind: true, Network: "tcp", Address: "127.0.0.1:0"}})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			s.Begin("kv@127.0.0.1:8000@m", nil)
			decodeSteps(b, n, engine.Observer{KVEvents: s.Publish})
		})
	}
}

func decodeSteps(b *testing.B, n int, observer engine.Observer) {
	b.ReportAllocs()
	x := &instant{token: []sample.Token{{ID: 1}}, target: b.N, reached: make(chan struct{})}
	e := engine.New(engine.Config{
		Sched: sched.Config{Blocks: 1 << 20, BlockSize: 16, MaxNumSeqs: n, MaxNumBatchedTokens: 4096, MaxModelLen: 1 << 30},
		Vocab: 64, LogInterval: -1, Observer: observer,
	}, x)
	ctx, leave := context.WithCancel(b.Context())
	for i := range n {
		h, err := e.Submit(ctx, greedy(prompt(i, 16), 0))
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			for range h.All(ctx) {
			}
		}()
	}
	<-x.reached
	leave()
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/token")
}
