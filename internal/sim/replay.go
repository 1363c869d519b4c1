package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// driver runs a scheduler through a header's events, one line a step.
type driver struct {
	h     *Header
	s     *sched.Scheduler
	store *store // nil without a connector
	toy   *toy   // nil if outputs come from the formula
	byID  map[sched.RequestID]*TraceRequest
	order []*TraceRequest // by (arrive, index)
	added int             // of order
	opsAt int             // of h.Ops
	fifo  []flight        // batches in flight, empty ones too
	stats sched.Counters  // at the last update
	shown int             // KV events recorded that are still pending

	text     map[sched.RequestID][]int32
	ends     map[sched.RequestID]sched.Change
	rules    []applied // rules by which decisions may differ from upstream's
	step     int
	fair     fairness
	progress bool // this step computed, ended or moved something
}

// flight is a planned batch.
type flight struct {
	step    uint64
	idle    bool
	rows    []sample           // those that sample; by the formula they return what is next when the batch is done
	outputs []sched.StepOutput // of the toy model
}

// sample is a row that samples.
type sample struct {
	id     sched.RequestID
	drafts int
}

// applied is one use of a rule.
type applied struct {
	rule sched.Rule
	step int
}

func newDriver(h *Header) (*driver, error) {
	cfg, err := h.Config.scheduler()
	if err != nil {
		return nil, err
	}
	d := &driver{
		h: h, byID: map[sched.RequestID]*TraceRequest{},
		text: map[sched.RequestID][]int32{}, ends: map[sched.RequestID]sched.Change{},
	}
	if h.Connector {
		d.store = newStore(h.Requests, h.Config.BlockSize)
		cfg.Connector = d.store
	}
	if err := checkSize(&cfg); err != nil {
		return nil, err
	}
	d.s = sched.New(cfg)
	switch h.Outputs {
	case "":
	case "history":
		d.toy = newToy(cfg)
		if d.store != nil {
			d.store.onlyLoaded = true
		}
	default:
		return nil, fmt.Errorf("unknown source of outputs %q", h.Outputs)
	}
	for i := range h.Requests {
		r := &h.Requests[i]
		d.byID[sched.RequestID(r.ID)] = r
		d.order = append(d.order, r)
	}
	slices.SortStableFunc(d.order, func(a, b *TraceRequest) int {
		if a.Arrive != b.Arrive {
			return a.Arrive - b.Arrive
		}
		return a.Index - b.Index
	})
	return d, nil
}

// next runs one step and returns its line.
func (d *driver) next() Line {
	l := Line{}
	l.set("t", "step")
	l.set("s", d.step)
	if d.store != nil {
		d.store.step = d.step
	}
	d.progress = false
	d.applyOps(l)
	d.addArrivals(l)
	d.grammars()
	d.fair.before(d)
	p := d.s.Schedule(float64(d.step))
	d.fair.after(d, p)
	d.note(p.Changes, nil)
	l.planFields(d.s, p)
	d.fifo = append(d.fifo, d.launch(p))
	for len(d.fifo) >= max(d.h.Config.PipelineDepth, 1) {
		f := d.fifo[0]
		d.fifo = d.fifo[1:]
		d.update(l, f)
	}
	l.stateFields(d.s)
	d.step++
	return l
}

// applyOps does what the header says is done at the start of this step.
func (d *driver) applyOps(l Line) {
	var results []any
	for ; d.opsAt < len(d.h.Ops) && d.h.Ops[d.opsAt].Step <= d.step; d.opsAt++ {
		d.progress = true
		switch op := d.h.Ops[d.opsAt]; op.Op {
		case "abort":
			aborted := []string{}
			for _, id := range op.IDs {
				if d.ended(d.s.Apply(sched.Abort{ID: sched.RequestID(id)})) {
					aborted = append(aborted, id)
				}
			}
			results = append(results, map[string]any{"op": "abort", "aborted": aborted})
		case "reset_prefix_cache":
			var ok any = true
			changes := d.s.Apply(sched.ResetPrefixCache{Running: op.ResetRunning})
			if err := changes[len(changes)-1].Err; err != nil {
				ok = false
				if op.ResetRunning {
					ok = "error"
				}
			}
			d.note(changes, nil)
			results = append(results, map[string]any{"op": op.Op, "ok": ok})
		case "pause":
			d.s.Apply(sched.Pause{Level: sched.PauseLevel(op.Level)})
			results = append(results, map[string]any{"op": op.Op, "level": op.Level})
		}
	}
	setUnlessEmpty(l, "ops", results)
}

// ended notes the changes and tells whether a request ended by them.
func (d *driver) ended(changes []sched.Change) bool {
	d.note(changes, nil)
	return slices.ContainsFunc(changes, func(c sched.Change) bool { return c.Kind == sched.Finished })
}

func (d *driver) addArrivals(l Line) {
	var ids []string
	for ; d.added < len(d.order) && d.order[d.added].Arrive <= d.step; d.added++ {
		r := d.order[d.added]
		ids = append(ids, r.ID)
		if d.toy != nil {
			d.toy.ends[sched.RequestID(r.ID)] = r.ends()
		}
		d.note(d.s.Apply(sched.AddRequest{Request: r.request()}), nil)
		d.progress = true
	}
	setUnlessEmpty(l, "arr", ids)
}

// grammars tells the scheduler of grammars that are compiled, or have failed, by this step.
func (d *driver) grammars() {
	for _, r := range d.order[:d.added] {
		if _, ended := d.ends[sched.RequestID(r.ID)]; ended {
			continue
		}
		switch {
		case r.GrammarReady != nil && max(*r.GrammarReady, r.Arrive) == d.step:
			d.s.Apply(sched.GrammarReady{ID: sched.RequestID(r.ID)})
		case r.GrammarError != nil && max(*r.GrammarError, r.Arrive) == d.step:
			d.s.Apply(sched.GrammarReady{ID: sched.RequestID(r.ID), Err: "grammar does not compile"})
		}
	}
}

// launch begins a plan's loads and runs the toy model on it, or notes which rows sample.
func (d *driver) launch(p *sched.Plan) flight {
	f := flight{step: p.Step, idle: p.Idle()}
	for _, ld := range p.Loads {
		d.store.begin(ld)
		if d.toy != nil && !ld.Async {
			d.fill(d.store.loads[ld.ID])
		}
	}
	if !p.Idle() || len(p.Loads) > 0 {
		d.progress = true
	}
	if d.toy != nil {
		f.outputs = d.toy.run(p)
		d.failRows(p, f.outputs)
		return f
	}
	for i := range p.Requests {
		r := &p.Requests[i]
		if r.Sample {
			f.rows = append(f.rows, sample{r.ID, len(r.Drafts)})
		}
	}
	return f
}

// failRows has the rows fail that the header says: what they filled is rubbish.
func (d *driver) failRows(p *sched.Plan, outputs []sched.StepOutput) {
	next := 0
	for i := range p.Requests {
		r := &p.Requests[i]
		if !r.Sample {
			continue
		}
		if at := d.byID[r.ID].FailAt; at != nil && *at == r.Outputs {
			outputs[next] = sched.StepOutput{ID: r.ID, Err: "not a number"}
			d.toy.spoil(r)
		}
		next++
	}
}

// sampled returns what the rows of a batch return by the formula: the request's next token and, of the drafts, so many
// more as its number and the position say.
func (d *driver) sampled(rows []sample) []sched.StepOutput {
	var outputs []sched.StepOutput
	for _, row := range rows {
		spec, k, accepted := d.byID[row.id], len(d.text[row.id]), 0
		if d.h.Config.NumSpecTokens > 0 {
			accepted = mod(spec.Index+k, row.drafts+1)
		}
		out := sched.StepOutput{ID: row.id, Drafts: make([]int32, d.h.Config.NumSpecTokens)}
		for j := range accepted + 1 {
			out.Tokens = append(out.Tokens, spec.output(k+j))
		}
		outputs = append(outputs, out)
	}
	return outputs
}

// fill puts into the toy's memory what a load brings: its tokens, but not those of bad blocks, which hold rubbish.
func (d *driver) fill(t transfer) {
	r := d.byID[t.id]
	tokens := append(r.promptTokens(), d.text[t.id]...)
	bad := func(b kv.BlockID) bool { return slices.Contains(t.bad, b) }
	d.toy.load(t.tables, tokens, t.from, t.to, bad)
	for _, b := range t.bad {
		clear(d.toy.memory[b])
	}
}

// update returns a batch and the connector's report to the scheduler.
func (d *driver) update(l Line, f flight) {
	var rep report
	if d.store != nil {
		rep = d.store.take()
	}
	for _, t := range rep.received {
		if d.toy != nil {
			d.fill(t)
		}
	}
	out := map[sched.RequestID][]int32{}
	done := map[sched.RequestID]row{}
	note := func(c sched.Change) {
		switch c.Kind {
		case sched.Emitted:
			out[c.ID] = append(out[c.ID], c.Token)
		case sched.Finished:
			done[c.ID] = row{c.Reason.String(), c.Preemptions, c.Outputs}
		}
	}
	outputs := f.outputs
	if d.toy == nil {
		outputs = d.sampled(f.rows)
	}
	d.note(d.s.Apply(&sched.StepDone{Step: f.step, Outputs: outputs, Bad: rep.bad}), note)
	for _, t := range rep.received {
		d.note(d.s.Apply(sched.LoadDone{ID: t.id, Epoch: t.epoch}), note)
	}
	for _, t := range rep.sent {
		d.note(d.s.Apply(sched.SendDone{ID: t.id, Epoch: t.epoch}), note)
	}
	l.reportField(rep)
	if len(out) > 0 {
		l.set("out", out)
	}
	if len(done) > 0 {
		l.set("done", done)
	}
	now := d.s.Stats().Counters
	l.lookups("pc", now.Prefix, d.stats.Prefix, now.PrefixPreempted, d.stats.PrefixPreempted)
	l.lookups("xpc", now.External, d.stats.External, now.ExternalPreempted, d.stats.ExternalPreempted)
	d.stats = now
	d.shown = l.eventsField(d.s, d.shown)
	if len(rep.received)+len(rep.sent)+len(rep.bad) > 0 {
		d.progress = true
	}
}

func (l Line) reportField(rep report) {
	kvf := map[string]any{}
	ids := func(ts []transfer) []sched.RequestID {
		var ids []sched.RequestID
		for _, t := range ts {
			ids = append(ids, t.id)
		}
		return ids
	}
	if len(rep.received) > 0 {
		kvf["recv"] = ids(rep.received)
	}
	if len(rep.sent) > 0 {
		kvf["sent"] = ids(rep.sent)
	}
	if len(rep.bad) > 0 {
		kvf["bad"] = rep.bad
	}
	if len(kvf) > 0 {
		l.set("kv", kvf)
	}
}

// lookups records what was counted since the last update: first admissions, then those after a preemption.
func (l Line) lookups(key string, now, then, nowPre, thenPre sched.Lookups) {
	d := []uint64{
		now.Requests - then.Requests, now.Queried - then.Queried, now.Hit - then.Hit,
		nowPre.Requests - thenPre.Requests, nowPre.Queried - thenPre.Queried, nowPre.Hit - thenPre.Hit,
	}
	if slices.ContainsFunc(d, func(n uint64) bool { return n > 0 }) {
		l.set(key, d)
	}
}

// note keeps what the checks at the end need, and passes each change on.
func (d *driver) note(changes []sched.Change, more func(sched.Change)) {
	for _, c := range changes {
		switch c.Kind {
		case sched.Emitted:
			d.text[c.ID] = append(d.text[c.ID], c.Token)
		case sched.Finished, sched.Refused:
			if c.Kind == sched.Refused {
				c.Reason = sched.ReasonError
			}
			d.ends[c.ID] = c
			d.progress = true
		}
		if c.Rule != 0 {
			d.rules = append(d.rules, applied{c.Rule, d.step})
		}
		if more != nil {
			more(c)
		}
	}
}

// finished tells whether nothing is left to do.
func (d *driver) finished() bool {
	if d.added < len(d.order) || d.opsAt < len(d.h.Ops) || len(d.ends) < len(d.order) {
		return false
	}
	st := d.s.Stats()
	return st.FreeBlocks == st.UsableBlocks && !slices.ContainsFunc(d.fifo, func(f flight) bool { return !f.idle })
}

// diff returns the first key in which two lines differ, or "".
func diff(want, got Line) string {
	keys := slices.Collect(maps.Keys(want))
	for k := range got {
		if _, ok := want[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		if !bytes.Equal(want[k], got[k]) {
			return k
		}
	}
	return ""
}

// describe says how two lines differ in a key.
func describe(step int, key string, want, got Line) string {
	return fmt.Sprintf("step %d: %s = %s; recorded %s", step, key, orNothing(got[key]), orNothing(want[key]))
}

func orNothing(v []byte) string {
	if len(v) == 0 {
		return "nothing"
	}
	return string(v)
}
