package sim

import (
	"fmt"

	"github.com/quire-ai/quire/sched"
)

// fairness holds the bound that docs/scheduler.md states, in runs without a connector: when blocks run out, the first of the
// running requests (the first admitted; under priority the most urgent) is never the one preempted, and under fcfs with one step
// in flight the step computes for it. So nobody is preempted more often than tokens are computed for requests before it. Resets
// and blocks that turned out bad preempt by other rules.
type fairness struct {
	first sched.RequestID // of the running ones, before the step; empty if none runs
	fault string          // the first, empty if the bound held
}

// before notes who must not be preempted in the step that is about to be planned.
func (f *fairness) before(d *driver) {
	f.first = ""
	for id := range d.s.Running {
		if f.first == "" || d.h.Config.Policy == "priority" && d.moreUrgent(id, f.first) {
			f.first = id
		}
	}
}

func (d *driver) moreUrgent(a, b sched.RequestID) bool {
	x, y := d.byID[a], d.byID[b]
	return x.Priority < y.Priority || x.Priority == y.Priority && x.ArrivalTime < y.ArrivalTime
}

// after looks at what the step did.
func (f *fairness) after(d *driver, p *sched.Plan) {
	if d.store != nil || f.first == "" || f.fault != "" {
		return
	}
	short := false
	for _, c := range p.Changes {
		if c.Kind != sched.Moved || c.To != sched.Preempted || c.From != sched.Running {
			continue
		}
		short = true
		if c.ID == f.first {
			f.fault = fmt.Sprintf("step %d: request %s is preempted, though nobody running is before it", d.step, c.ID)
		}
	}
	if !short || d.h.Config.PipelineDepth > 1 || d.h.Config.Policy == "priority" {
		return
	}
	for i := range p.Requests {
		if p.Requests[i].ID == f.first {
			return
		}
	}
	f.fault = fmt.Sprintf("step %d: somebody is preempted, and nothing is computed for %s, which is before all", d.step, f.first)
}
