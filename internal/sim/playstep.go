package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// maxPlaySteps bounds what one command of a play may run.
const maxPlaySteps = 1 << 20

// schedule makes a plan, computes it and leaves its outputs in flight. It tells whether the plan did anything.
func (p *play) schedule(print bool) bool {
	plan := p.s.Schedule(float64(p.step))
	p.step++
	p.report(plan.Changes, print)
	if print {
		p.printPlan(plan)
	}
	p.checkKinds(plan)
	var bad []kv.BlockID
	for _, ld := range plan.Loads {
		ld.Tables = cloneTables(ld.Tables)
		p.store.loads[ld.ID] = ld
		if !ld.Async {
			bad = append(bad, p.loadNow(ld)...)
		}
	}
	if !plan.Idle() {
		f := playStep{step: plan.Step, outputs: p.toy.run(plan), bad: bad}
		for i := range plan.Requests {
			r := &plan.Requests[i]
			f.rows = append(f.rows, playRow{r.ID, slices.Clone(p.toy.seqs[r.ID].table[r.From/p.cfg.BlockSize:])})
		}
		p.flying = append(p.flying, f)
	}
	if err := p.audit(); err != nil {
		fmt.Fprintf(&p.out, "FAULT: %v\n", err)
	}
	return !plan.Idle() || len(plan.Loads) > 0 || len(plan.Preempted) > 0
}

// loadNow performs a synchronous load and returns the blocks that it could not fill. They hold rubbish.
func (p *play) loadNow(ld sched.Load) (bad []kv.BlockID) {
	if p.store.fails[ld.ID] > 0 {
		p.store.fails[ld.ID]--
		for _, t := range ld.Tables {
			bad = append(bad, t[ld.From/p.cfg.BlockSize:(ld.From+ld.Tokens)/p.cfg.BlockSize]...)
		}
		for _, b := range bad {
			clear(p.toy.memory[b])
		}
	}
	p.finishLoad(ld, bad)
	return bad
}

// checkKinds says so if a request is listed as new twice, or as anything else before it was new: whoever executes plans
// would forget its outputs, or know nothing of it.
func (p *play) checkKinds(plan *sched.Plan) {
	for i := range plan.Requests {
		r := &plan.Requests[i]
		spec := p.specs[r.ID]
		if spec.started == (r.Kind == sched.KindNew) {
			fmt.Fprintf(&p.out, "FAULT: %s is planned as %v, started before: %t\n", r.ID, r.Kind, spec.started)
		}
		spec.started = true
	}
}

// printPlan shows what a step computes.
func (p *play) printPlan(plan *sched.Plan) {
	for i := range plan.Requests {
		r := &plan.Requests[i]
		fmt.Fprintf(&p.out, "run %s %v tokens %d–%d blocks %v", r.ID, r.Kind, r.From, r.From+r.N, append([]kv.BlockID{}, r.Blocks...))
		for _, b := range r.MoreBlocks {
			fmt.Fprintf(&p.out, " %v", append([]kv.BlockID{}, b...))
		}
		if r.Sample {
			p.out.WriteString(" sample")
		}
		p.out.WriteString("\n")
	}
	for _, ld := range plan.Loads {
		fmt.Fprintf(&p.out, "load %s epoch %d tokens %d–%d blocks", ld.ID, ld.Epoch, ld.From, ld.From+ld.Tokens)
		for _, t := range ld.Tables {
			fmt.Fprintf(&p.out, " %v", t)
		}
		p.out.WriteString("\n")
	}
	if plan.Idle() && len(plan.Loads) == 0 {
		p.out.WriteString("nothing to run\n")
	}
}

// done returns the oldest plan in flight. With error=… the whole step failed; with fail=ID one row did.
func (p *play) done(a *arguments) error {
	if len(p.flying) == 0 {
		return errors.New("no plan is in flight")
	}
	ev, quiet := sched.StepDone{Err: a.str("error", "")}, a.has("quiet")
	failed := sched.RequestID(a.str("fail", ""))
	for _, b := range a.nums("bad") {
		ev.Bad = append(ev.Bad, kv.BlockID(b))
	}
	if err := a.finish(); err != nil {
		return err
	}
	for _, b := range ev.Bad {
		clear(p.toy.memory[b])
	}
	f := p.flying[0]
	p.flying = p.flying[1:]
	p.spoil(&f, failed)
	ev.Step, ev.Outputs, ev.Bad = f.step, f.outputs, append(ev.Bad, f.bad...)
	p.report(p.s.Apply(&ev), !quiet)
	return p.audit()
}

// spoil has a row of a plan in flight fail: what it filled is rubbish, and its output is an error.
func (p *play) spoil(f *playStep, id sched.RequestID) {
	var outputs []sched.StepOutput
	for _, row := range f.rows {
		i := slices.IndexFunc(f.outputs, func(out sched.StepOutput) bool { return out.ID == row.id })
		switch {
		case row.id == id:
			outputs = append(outputs, sched.StepOutput{ID: id, Err: "not a number"})
			for _, b := range row.filled {
				clear(p.toy.memory[b])
			}
		case i >= 0:
			outputs = append(outputs, f.outputs[i])
		}
	}
	f.outputs = outputs
}

// steps runs whole steps: schedule, compute, return.
func (p *play) steps(a *arguments) error {
	n, quiet := a.num("n", 1), a.has("quiet")
	if err := a.finish(); err != nil {
		return err
	}
	if n > maxPlaySteps {
		return fmt.Errorf("%d steps exceed %d", n, maxPlaySteps)
	}
	for range n {
		if !p.turn(!quiet) {
			break
		}
	}
	return nil
}

// turn runs one whole step, with as many plans in flight as the pipeline is deep.
func (p *play) turn(print bool) bool {
	did := p.schedule(print)
	depth := max(p.cfg.PipelineDepth, 1)
	if len(p.flying) >= depth || !did && len(p.flying) > 0 {
		f := p.flying[0]
		p.flying = p.flying[1:]
		p.report(p.s.Apply(&sched.StepDone{Step: f.step, Outputs: f.outputs, Bad: f.bad}), print)
		did = true
	}
	return did
}

// drain runs until nothing is left to run, prints how it went, and checks that everything is back where it was.
func (p *play) drain(a *arguments) error {
	most := min(a.num("max", 10000), maxPlaySteps)
	if err := a.finish(); err != nil {
		return err
	}
	before := p.s.Stats().Counters
	ended := p.ended()
	n := 0
	for ; p.turn(false); n++ {
		if n >= most {
			return fmt.Errorf("not drained after %d steps", most)
		}
	}
	st := p.s.Stats()
	fmt.Fprintf(&p.out, "%d steps, %d preemptions, %d tokens recomputed\n",
		n, st.Preemptions-before.Preemptions, st.RecomputedTokens-before.RecomputedTokens)
	p.printEnds(ended)
	if left := st.Running + st.Waiting + st.Deferred; left > 0 || st.FreeBlocks != st.UsableBlocks {
		fmt.Fprintf(&p.out, "left: %d requests, %d of %d blocks free\n", left, st.FreeBlocks, st.UsableBlocks)
	}
	return nil
}

// printEnds shows how the requests ended that had not before.
func (p *play) printEnds(before map[sched.RequestID]bool) {
	if p.quiet {
		reasons := map[string]int{}
		most := 0
		for _, r := range p.sorted() {
			if r.end == nil {
				reasons["not at all"]++
				continue
			}
			reasons[fmt.Sprintf("%v after %d tokens", r.end.Reason, r.end.Outputs)]++
			most = max(most, r.end.Preemptions)
		}
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			fmt.Fprintf(&p.out, "%d ended %s\n", reasons[reason], reason)
		}
		fmt.Fprintf(&p.out, "nobody was preempted more than %d times\n", most)
		return
	}
	for _, r := range p.sorted() {
		if r.end != nil && !before[r.ID] {
			fmt.Fprintf(&p.out, "%s %v after %d tokens, %d preemptions\n", r.ID, r.end.Reason, r.end.Outputs, r.end.Preemptions)
		}
		if r.end == nil {
			fmt.Fprintf(&p.out, "%s has not ended\n", r.ID)
		}
	}
}

func (p *play) ended() map[sched.RequestID]bool {
	ended := map[sched.RequestID]bool{}
	for id, r := range p.specs {
		ended[id] = r.end != nil
	}
	return ended
}

// sorted returns the admitted requests by arrival.
func (p *play) sorted() []*playRequest {
	var list []*playRequest
	for _, r := range p.specs {
		if _, live := p.s.Request(r.ID); live || r.end != nil {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *playRequest) int {
		if a.Arrival != b.Arrival {
			return int(a.Arrival - b.Arrival)
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	return list
}

// state prints every live request and the queues.
func (p *play) state() {
	for v := range p.s.Requests {
		fmt.Fprintf(&p.out, "%s %v computed %d of %d, %d blocks, epoch %d\n", v.ID, v.State, v.Computed, v.Known, v.Blocks, v.Epoch)
	}
	fmt.Fprintf(&p.out, "running %v waiting %v deferred %v, %d free\n",
		collectIDs(p.s.Running), collectIDs(p.s.Waiting), collectIDs(p.s.Deferred), p.s.Pool().Free())
}

// stats prints the counters that tests care for.
func (p *play) stats() {
	st := p.s.Stats()
	fmt.Fprintf(&p.out, "prefix %d of %d tokens in %d admissions, %d of %d in %d after preemption\n",
		st.Prefix.Hit, st.Prefix.Queried, st.Prefix.Requests,
		st.PrefixPreempted.Hit, st.PrefixPreempted.Queried, st.PrefixPreempted.Requests)
	if p.cfg.Connector != nil {
		fmt.Fprintf(&p.out, "external %d of %d tokens in %d admissions, %d of %d in %d after preemption\n",
			st.External.Hit, st.External.Queried, st.External.Requests,
			st.ExternalPreempted.Hit, st.ExternalPreempted.Queried, st.ExternalPreempted.Requests)
	}
	fmt.Fprintf(&p.out, "%d preemptions, %d tokens planned, %d recomputed\n", st.Preemptions, st.ScheduledTokens, st.RecomputedTokens)
}
