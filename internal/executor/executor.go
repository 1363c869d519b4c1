package executor

import (
	"errors"
	"fmt"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/internal/model"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// Config is the shape of an executor. Blocks, BlockSize and MaxNumBatchedTokens are those of sched.Config, whose Groups are
// what Groups returns.
type Config struct {
	Model               *model.Model
	Device              *cpu.Device // the one the model was loaded for; the executor does not close it
	Blocks              int         // usable; ids run from 1 to Blocks, block 0 is the null block
	BlockSize           int         // tokens: 8, 16 or 32
	MaxNumBatchedTokens int         // most rows of a step
}

// Executor computes plans. It is owned by the engine loop, which alone calls its methods.
type Executor struct {
	cfg     Config
	kv      *cpu.KV
	step    *model.Stepper
	vocab   int
	known   map[sched.RequestID]*request
	batch   model.Batch
	rows    []wanted        // parallel to batch.Want
	spans   []span          // of rows, one a request and tile of logits
	outputs []sample.Output // in plan order
	tokens  []sample.Token  // what Sampled of outputs are views of

	tile   int                     // first row of the logits being sampled
	logits []float32               // [rows of the tile][vocab]
	choose func(worker, chunk int) // chooseSpan, kept so that a step makes no closure
}

// request is what the executor remembers from Begin to Plan.Finished.
type request struct {
	params  *sample.Params
	prompt  []int32
	sampler *sample.Sampler
	tables  [][]int32 // block table of each cache group, stale left of its window
	scored  int       // prompt tokens whose log probability was reported; the first token has none and counts as reported
	err     error     // fault of the prompt, reported with the first plan
}

// wanted is a row whose logits are wanted.
type wanted struct {
	output   int // index into outputs
	request  *request
	position int  // of the row's token
	sample   bool // choose the next token; else score the prompt's
}

// span is rows[from:to] of one request within one tile of logits: a sampler has one caller.
type span struct{ from, to int }

// Groups returns the cache groups of a model for its scheduler; nil for one that keeps the whole context in all layers.
func Groups(m *model.Model) []kv.Group {
	if len(m.CacheGroups) == 1 && m.CacheGroups[0].Window == 0 {
		return nil
	}
	groups := make([]kv.Group, len(m.CacheGroups))
	for i := range groups {
		groups[i].Window = m.CacheGroups[i].Window
	}
	return groups
}

// New allocates the key-value memory and working memory for steps of MaxNumBatchedTokens rows.
func New(cfg Config) (*Executor, error) {
	if cfg.Blocks < 1 || cfg.MaxNumBatchedTokens < 1 {
		return nil, fmt.Errorf("executor: %d blocks and %d batched tokens: want at least one of each", cfg.Blocks, cfg.MaxNumBatchedTokens)
	}
	memory, err := cpu.NewKV(cfg.Model.KVShape(cfg.BlockSize), cfg.Blocks+1)
	if err != nil {
		return nil, fmt.Errorf("executor: %w", err)
	}
	step, err := cfg.Model.NewStepper(memory, cfg.MaxNumBatchedTokens)
	if err != nil {
		return nil, fmt.Errorf("executor: %w", errors.Join(err, memory.Close()))
	}
	e := &Executor{cfg: cfg, kv: memory, step: step, vocab: cfg.Model.Vocab, known: map[sched.RequestID]*request{}}
	e.batch.Seqs = make([][]cpu.Seq, len(cfg.Model.CacheGroups))
	e.choose = e.chooseSpan
	return e, nil
}

// Close frees the key-value memory. Nothing is called after it.
func (e *Executor) Close() error { return e.kv.Close() }

// KV is the key-value memory. Its blocks may be read and written by others only as the scheduler's plans allow.
func (e *Executor) KV() *cpu.KV { return e.kv }

// Vocab is the number of logits in a row.
func (e *Executor) Vocab() int { return e.vocab }

// Begin introduces a request before its first plan. Params were validated and, like the prompt, are read until the
// request is finished.
func (e *Executor) Begin(id sched.RequestID, p *sample.Params, prompt []int32) {
	invariant.Check(e.known[id] == nil, "request %s begins once", id)
	r := &request{params: p, prompt: prompt, scored: 1, sampler: sample.New(p, e.vocab, prompt, e.cfg.Device.Logits())}
	r.tables = make([][]int32, len(e.cfg.Model.CacheGroups))
	for g := range r.tables {
		r.tables[g] = make([]int32, 0, e.cfg.Model.MaxModelLen/e.cfg.BlockSize+1)
	}
	for i, token := range prompt {
		if token < 0 || int(token) >= e.vocab {
			r.err = fmt.Errorf("prompt token %d is %d, the vocabulary has %d", i, token, e.vocab)
			break
		}
	}
	e.known[id] = r
}

// Execute computes a plan and returns one output for each planned request, in plan order, valid until the next call. A
// request that cannot be computed or sampled has its error in its output; an error returned concerns the whole step.
func (e *Executor) Execute(p *sched.Plan) ([]sample.Output, error) {
	for _, id := range p.Finished {
		delete(e.known, id)
	}
	e.prepare(p)
	if err := e.step.Forward(&e.batch); err != nil {
		return nil, fmt.Errorf("execute step %d: %w", p.Step, err)
	}
	for e.tile = 0; e.tile < len(e.rows); e.tile += model.LogitRows {
		n := min(model.LogitRows, len(e.rows)-e.tile)
		e.logits = e.step.Logits(e.tile, n)
		e.splitSpans(e.tile, e.tile+n)
		e.cfg.Device.Run(len(e.spans), e.choose)
	}
	return e.outputs, nil
}

// prepare turns the plan into rows.
func (e *Executor) prepare(p *sched.Plan) {
	e.batch.Tokens, e.batch.Want = e.batch.Tokens[:0], e.batch.Want[:0]
	for g := range e.batch.Seqs {
		e.batch.Seqs[g] = e.batch.Seqs[g][:0]
	}
	e.rows, e.outputs = e.rows[:0], e.outputs[:0]
	if n := len(p.Requests); cap(e.tokens) < n {
		e.tokens = make([]sample.Token, n)
	}
	e.tokens = e.tokens[:cap(e.tokens)]
	for i := range p.Requests {
		e.outputs = append(e.outputs, sample.Output{})
		if err := e.addRows(i, &p.Requests[i]); err != nil {
			e.outputs[i].Err = err
		}
	}
}

// addRows brings a request's tables up to the plan and adds its rows to the batch.
func (e *Executor) addRows(output int, p *sched.Planned) error {
	r := e.known[p.ID]
	if r == nil { // the arguments of Check would be allocated
		invariant.Check(false, "planned request %s has begun", p.ID)
	}
	switch {
	case r.err != nil:
		return r.err
	case len(p.Tokens) != p.N:
		return fmt.Errorf("request %s: %d of %d tokens known: drafts are not supported", p.ID, len(p.Tokens), p.N)
	case 1+len(p.MoreBlocks) != len(r.tables):
		return fmt.Errorf("request %s: planned with block tables of %d cache groups, the model has %d", p.ID, 1+len(p.MoreBlocks), len(r.tables))
	}
	r.extend(0, p.Kind, p.Blocks)
	for g, blocks := range p.MoreBlocks {
		r.extend(g+1, p.Kind, blocks)
	}
	for g := range r.tables {
		if n := len(r.tables[g]); p.From+p.N > n*e.cfg.BlockSize {
			return fmt.Errorf("request %s: computes up to %d tokens in %d blocks of %d", p.ID, p.From+p.N, n, e.cfg.BlockSize)
		}
	}
	first := len(e.batch.Tokens)
	e.batch.Tokens = append(e.batch.Tokens, p.Tokens...)
	for g := range r.tables {
		e.batch.Seqs[g] = append(e.batch.Seqs[g], cpu.Seq{Blocks: r.tables[g], First: first, Rows: p.N, Pos: p.From})
	}
	for i := range p.N {
		w := wanted{output: output, request: r, position: p.From + i, sample: p.Sample && i == p.N-1}
		if w.sample || r.wantsScore(w.position+1) {
			e.batch.Want = append(e.batch.Want, int32(first+i))
			e.rows = append(e.rows, w)
		}
	}
	return nil
}

// extend brings the table of a cache group up to the plan.
func (r *request) extend(group int, kind sched.Kind, blocks []kv.BlockID) {
	t := r.tables[group]
	if kind != sched.KindRunning {
		t = t[:0]
	}
	for _, b := range blocks {
		t = append(t, int32(b))
	}
	r.tables[group] = t
}

// wantsScore tells whether the log probability of the prompt token at a position is to be reported: a request that
// was preempted computes again what it has reported before.
func (r *request) wantsScore(position int) bool {
	return r.params.PromptLogprobs >= 0 && position >= r.scored && position < len(r.prompt)
}

// splitSpans cuts rows[from:to] where the request changes.
func (e *Executor) splitSpans(from, to int) {
	e.spans = e.spans[:0]
	for i := from; i < to; i++ {
		if i > from && e.rows[i].output == e.rows[i-1].output {
			e.spans[len(e.spans)-1].to = i + 1
		} else {
			e.spans = append(e.spans, span{i, i + 1})
		}
	}
}

// chooseSpan scores and samples the rows of one request. It runs on any worker and touches that request and its output
// only. The first fault ends the request.
func (e *Executor) chooseSpan(_, chunk int) {
	for i := e.spans[chunk].from; i < e.spans[chunk].to; i++ {
		w := &e.rows[i]
		out := &e.outputs[w.output]
		if out.Err == nil {
			out.Err = e.chooseRow(w, out, e.logits[(i-e.tile)*e.vocab:][:e.vocab])
		}
	}
}

func (e *Executor) chooseRow(w *wanted, out *sample.Output, logits []float32) error {
	r, next := w.request, w.position+1
	if w.sample {
		token, err := r.sampler.Sample(logits, next)
		if err != nil {
			return err
		}
		e.tokens[w.output] = token
		out.Sampled = e.tokens[w.output:][:1:1]
		return nil
	}
	token, err := r.sampler.Score(logits, r.prompt[next])
	if err != nil {
		return err
	}
	out.PromptLogprobs = append(out.PromptLogprobs, token)
	r.scored = next + 1
	return nil
}
