// Package executortest is a model without weights, for tests of everything around a model.
//
// The Toy has a KV memory of one number a slot and reads it through the block tables of the plans, as a real executor does.
// The number of a position is a digest of its token and of all numbers before it, as a deep layer's key depends on the whole
// prefix; the next token is drawn from a digest of all of them. So the text of a request depends on the request alone as
// long as scheduler and cache are right, and a block that is wrong, stale, shared by mistake or not computed changes it.
//
// The Toy checks each plan against what it remembers (tables, positions, who writes what) and panics where the two differ.
package executortest

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// Options shape a Toy. The functions are called by Execute, on the engine's loop, and may be nil.
type Options struct {
	Blocks    int // usable; ids run from 1 to Blocks
	BlockSize int // tokens
	Vocab     int // 0 means 64

	// Script chooses the token that follows outputs, whatever the history says; a negative token leaves the choice to it.
	Script func(id sched.RequestID, prompt, outputs []int32) int32
	// Step is called before a step is computed: it may wait, or fail the step.
	Step func(*sched.Plan) error
	// Row is called before a request's rows are computed: an error fails this request, and its slots are spoilt.
	Row func(*sched.Planned) error
}

// Toy is an executor. Execute, Begin and Close belong to one caller; Remembered may be called by any.
type Toy struct {
	options Options
	memory  []uint64 // [block][slot], 0 where nothing was written
	writer  []uint64 // [block][slot], the step that wrote it last
	outputs []sample.Output
	logits  []float32 // [vocab]
	closed  bool

	mu       sync.Mutex // guards requests against Remembered
	requests map[sched.RequestID]*request
}

type request struct {
	prompt   []int32
	outputs  []int32
	sampler  *sample.Sampler
	params   *sample.Params
	table    []kv.BlockID
	computed int
	scored   int // prompt tokens whose log probability was reported; the first has none
}

// New returns a Toy with empty memory.
func New(o Options) *Toy {
	if o.Vocab == 0 {
		o.Vocab = 64
	}
	slots := (o.Blocks + 1) * o.BlockSize // block 0 is the null block
	return &Toy{
		options: o, memory: make([]uint64, slots), writer: make([]uint64, slots), logits: make([]float32, o.Vocab),
		requests: make(map[sched.RequestID]*request),
	}
}

// Vocab returns the number of logits in a row.
func (t *Toy) Vocab() int { return t.options.Vocab }

// BlockBytes is the size of a block of the toy's memory.
func (t *Toy) BlockBytes() int { return 8 * t.options.BlockSize }

// Block is the memory of one block, for connectors.
func (t *Toy) Block(id int32) []byte {
	block := t.memory[int(id)*t.options.BlockSize:][:t.options.BlockSize]
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(block))), t.BlockBytes())
}

// Begin introduces a request before its first plan.
func (t *Toy) Begin(id sched.RequestID, p *sample.Params, prompt []int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	invariant.Check(t.requests[id] == nil, "request %s begins once", id)
	t.requests[id] = &request{prompt: prompt, params: p, scored: 1, sampler: sample.New(p, t.options.Vocab, prompt, cpu.LogitsAt(cpu.Generic))}
}

// Remembered returns how many requests the Toy keeps state of.
func (t *Toy) Remembered() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.requests)
}

// Close ends the Toy.
func (t *Toy) Close() error {
	invariant.Check(!t.closed, "executor is closed once")
	t.closed = true
	return nil
}

// Execute computes a plan and returns one output for each planned request, in plan order, valid until the next call.
func (t *Toy) Execute(p *sched.Plan) ([]sample.Output, error) {
	invariant.Check(!t.closed, "step %d after Close", p.Step)
	t.mu.Lock()
	for _, id := range p.Finished {
		delete(t.requests, id)
	}
	t.mu.Unlock()
	if t.options.Step != nil && len(p.Requests) > 0 {
		if err := t.options.Step(p); err != nil {
			t.spoilAll(p)
			return nil, err
		}
	}
	t.outputs = t.outputs[:0]
	for i := range p.Requests {
		t.outputs = append(t.outputs, t.row(p.Step, &p.Requests[i]))
	}
	return t.outputs, nil
}

func (t *Toy) row(step uint64, p *sched.Planned) sample.Output {
	r := t.update(p)
	if t.options.Row != nil {
		if err := t.options.Row(p); err != nil {
			t.spoil(p, r)
			return sample.Output{Err: err}
		}
	}
	var out sample.Output
	digest := t.read(p.ID, r, 0, p.From, 0)
	for i, token := range p.Tokens {
		position := p.From + i
		slot := t.slot(r, position)
		if t.writer[slot] == step {
			invariant.Broken("slot %d is written twice in step %d", slot, step)
		}
		t.memory[slot] = mix(digest, uint64(token)) | 1
		t.writer[slot] = step
		digest = t.read(p.ID, r, position, position+1, digest)
		if next := position + 1; r.params.PromptLogprobs >= 0 && next == r.scored && next < len(r.prompt) {
			r.scored++
			tok, err := r.sampler.Score(t.row64(digest), r.prompt[next])
			invariant.Check(err == nil, "toy logits are finite: %v", err)
			out.PromptLogprobs = append(out.PromptLogprobs, tok)
		}
	}
	r.computed = p.From + p.N
	if !p.Sample {
		return out
	}
	tok, err := r.sampler.Sample(t.next(p.ID, r, digest), r.computed)
	if err != nil {
		return sample.Output{Err: err}
	}
	r.outputs = append(r.outputs, tok.ID)
	out.Sampled = []sample.Token{tok}
	return out
}

// update brings the request's table up to the plan and checks that the plan goes on where the request stands.
func (t *Toy) update(p *sched.Planned) *request {
	r := t.requests[p.ID]
	if r == nil {
		invariant.Broken("request %s is planned before it began", p.ID)
	}
	switch p.Kind {
	case sched.KindNew, sched.KindResumed:
		r.table = append(r.table[:0], p.Blocks...)
	case sched.KindRunning:
		r.table = append(r.table, p.Blocks...)
		if p.From != r.computed {
			invariant.Broken("request %s goes on at %d, computed are %d", p.ID, p.From, r.computed)
		}
	}
	r.outputs = r.outputs[:p.Outputs] // the scheduler may have dropped the last one
	known, end := len(r.prompt)+len(r.outputs), p.From+p.N
	if p.N != len(p.Tokens) || p.N == 0 || end > known || p.Sample != (end == known) || end > len(r.table)*t.options.BlockSize {
		invariant.Broken("request %s computes [%d, %d) of %d known, %d given, sample %t, %d blocks",
			p.ID, p.From, end, known, len(p.Tokens), p.Sample, len(r.table))
	}
	for i, token := range p.Tokens {
		if want := r.known(p.From + i); token != want {
			invariant.Broken("request %s token %d is %d, want %d", p.ID, p.From+i, token, want)
		}
	}
	return r
}

// known returns the token at a position of prompt and outputs.
func (r *request) known(position int) int32 {
	if position < len(r.prompt) {
		return r.prompt[position]
	}
	return r.outputs[position-len(r.prompt)]
}

func (t *Toy) slot(r *request, position int) int {
	block := int(r.table[position/t.options.BlockSize])
	if block < 1 || block > t.options.Blocks {
		invariant.Broken("block %d is one of %d", block, t.options.Blocks)
	}
	return block*t.options.BlockSize + position%t.options.BlockSize
}

// read goes on with a digest over the memory of positions [from, to).
func (t *Toy) read(id sched.RequestID, r *request, from, to int, digest uint64) uint64 {
	for position := from; position < to; position++ {
		slot := t.slot(r, position)
		if t.memory[slot] == 0 {
			invariant.Broken("request %s reads position %d, which was never written", id, position)
		}
		digest = mix(digest, t.memory[slot])
	}
	return digest
}

// row64 returns the logits of a digest, in [0, 8), no two nearby digests alike.
func (t *Toy) row64(digest uint64) []float32 {
	for i := range t.logits {
		t.logits[i] = float32(mix(digest, uint64(i))>>40) * (8.0 / (1 << 24))
	}
	return t.logits
}

func (t *Toy) next(id sched.RequestID, r *request, digest uint64) []float32 {
	logits := t.row64(digest)
	if t.options.Script != nil {
		if token := t.options.Script(id, r.prompt, r.outputs); token >= 0 {
			logits[token] = 1000
		}
	}
	return logits
}

// spoil leaves in the slots of a failed row what a half-done computation would.
func (t *Toy) spoil(p *sched.Planned, r *request) {
	for i := range p.N {
		t.memory[t.slot(r, p.From+i)] = 0xBAD | 1
	}
}

func (t *Toy) spoilAll(p *sched.Plan) {
	for i := range p.Requests {
		t.spoil(&p.Requests[i], t.update(&p.Requests[i]))
	}
}

// mix is the finaliser of SplitMix64 over both numbers.
func mix(a, b uint64) uint64 {
	x := a*0x9E3779B97F4A7C15 + b + 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Play returns a Script that answers every request with the same tokens and then leaves the choice to the history.
func Play(tokens ...int32) func(sched.RequestID, []int32, []int32) int32 {
	return func(_ sched.RequestID, _, outputs []int32) int32 {
		if n := len(outputs); n < len(tokens) {
			return tokens[n]
		}
		return -1
	}
}

// FailRow returns a Row function that fails the request's row for its n-th output, counted from 0.
func FailRow(id sched.RequestID, n int) func(*sched.Planned) error {
	return func(p *sched.Planned) error {
		if p.ID == id && p.Outputs == n && p.Sample {
			return fmt.Errorf("row %s fails at output %d", id, n)
		}
		return nil
	}
}
