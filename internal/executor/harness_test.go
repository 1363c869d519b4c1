package executor

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/model"
	"github.com/quire-ai/quire/internal/model/modeltest"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// setup says how a server computes. The zero value: the generic level, one thread, blocks of 16, a pool and a token
// budget nothing has to wait for, prefix cache on.
type setup struct {
	level     cpu.Level
	threads   int
	blockSize int
	blocks    int // for each cache group
	budget    int
	noCache   bool
	whole     bool // all layers keep the whole context
	poison    bool // what nobody holds is NaN in every step; only without the cache
}

func (s setup) String() string {
	return fmt.Sprintf("%v-t%d-bs%d-blocks%d-budget%d-cache%t", s.level, s.threads, s.blockSize, s.blocks, s.budget, !s.noCache)
}

// server is the real scheduler and the real executor without anything around them.
type server struct {
	t     testing.TB
	setup setup
	sched *sched.Scheduler
	ex    *Executor
	runs  map[sched.RequestID]*run
	step  sched.StepDone
}

// run is a request and what came of it.
type run struct {
	*sched.Request
	params sample.Params
	tokens []sample.Token
	prompt []sample.Token // log probabilities of the prompt
	err    string
	done   bool
}

func newServer(t testing.TB, path string, o setup) *server {
	t.Helper()
	def := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	def(&o.threads, 1)
	def(&o.blockSize, 16)
	def(&o.blocks, 4096/o.blockSize)
	def(&o.budget, 512)
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	dev, err := cpu.NewDevice(cpu.Options{Level: o.level, Threads: o.threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	m, err := model.Load(f, model.Options{Device: dev, MaxModelLen: 1024, WholeContext: o.whole})
	if err != nil {
		t.Fatal(err)
	}
	o.blocks *= len(m.CacheGroups)
	ex, err := New(Config{Model: m, Device: dev, Blocks: o.blocks, BlockSize: o.blockSize, MaxNumBatchedTokens: o.budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ex.Close() })
	s := sched.New(sched.Config{
		Blocks: o.blocks, BlockSize: o.blockSize, MaxNumSeqs: 64, MaxNumBatchedTokens: o.budget,
		MaxModelLen: 1024, NoPrefixCaching: o.noCache, Groups: Groups(m),
	})
	return &server{t: t, setup: o, sched: s, ex: ex, runs: map[sched.RequestID]*run{}}
}

// add hands a request to the scheduler.
func (s *server) add(r *run) {
	s.t.Helper()
	if len(r.Request.Prompt) == 0 {
		s.t.Fatalf("request %s has no prompt", r.ID)
	}
	r.Request.IgnoreEOS = true
	r.Request.SkipCache = r.params.PromptLogprobs >= 0
	s.runs[r.ID] = r
	s.ex.Begin(r.ID, &r.params, r.Prompt)
	s.take(s.sched.Apply(sched.AddRequest{Request: r.Request}))
}

// abort ends a request in whatever state it is.
func (s *server) abort(id sched.RequestID) { s.take(s.sched.Apply(sched.Abort{ID: id})) }

// take notes which requests ended.
func (s *server) take(changes []sched.Change) {
	s.t.Helper()
	for _, c := range changes {
		switch c.Kind {
		case sched.Refused:
			s.t.Fatalf("request %s refused: %v", c.ID, c)
		case sched.Finished:
			s.runs[c.ID].done = true
		}
	}
}

// once runs one step and reports whether there was one.
func (s *server) once() bool {
	s.t.Helper()
	p := s.sched.Schedule(0)
	s.take(p.Changes)
	if s.setup.poison {
		s.spoil(append(s.sched.Pool().AppendFree(nil, s.sched.Pool().Usable()), kv.Null))
	}
	outputs, err := s.ex.Execute(p)
	if err != nil {
		s.t.Fatal(err)
	}
	if p.Idle() {
		return false
	}
	s.step.Step, s.step.Outputs = p.Step, s.step.Outputs[:0]
	for i, out := range outputs {
		r := s.runs[p.Requests[i].ID]
		r.tokens = append(r.tokens, out.Sampled...)
		r.prompt = append(r.prompt, out.PromptLogprobs...)
		done := sched.StepOutput{ID: r.ID}
		for _, token := range out.Sampled {
			done.Tokens = append(done.Tokens, token.ID)
		}
		if out.Err != nil {
			r.err, done.Err = out.Err.Error(), out.Err.Error()
		}
		s.step.Outputs = append(s.step.Outputs, done)
	}
	s.take(s.sched.Apply(&s.step))
	return true
}

// spoil fills blocks with NaN.
func (s *server) spoil(blocks []kv.BlockID) {
	for _, b := range blocks {
		memory := s.ex.KV().Block(int32(b))
		for i := range memory {
			memory[i] = 0xff
		}
	}
}

// drain runs until every request has ended.
func (s *server) drain() {
	s.t.Helper()
	for s.once() {
	}
	for id, r := range s.runs {
		if !r.done {
			s.t.Fatalf("request %s never ended", id)
		}
	}
}

// preemptions is how often the scheduler took blocks away.
func (s *server) preemptions() uint64 { return uint64(s.sched.Stats().Preemptions) }

// randomRun makes a request with a random prompt, greedy or sampled by its number.
func randomRun(n, prompt, output int) *run {
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	r := &run{Request: &sched.Request{ID: sched.RequestID(fmt.Sprintf("r%d", n)), MaxTokens: output}, params: sample.Default()}
	for range prompt {
		r.Prompt = append(r.Prompt, rng.Int32N(288))
	}
	r.params.Logprobs = 2
	r.params.Seed = uint64(n)
	if n%3 == 0 {
		r.params.Temperature = 0
	}
	if n%4 == 1 {
		r.params.RepetitionPenalty = 1.1
		r.params.PromptLogprobs = 1
	}
	return r
}

// tiny writes a random model of an architecture in which rounding shows: quantised matrices.
func tiny(t testing.TB, arch string) string {
	t.Helper()
	s := modeltest.Spec{Arch: arch, Type: quantised, Hidden: 32, FFN: 64}
	if arch == "gemma3" {
		s.Layers = 6  // the last is global
		s.Window = 20 // ends inside blocks of 8 and 16
	}
	return modeltest.Write(t, s)
}
