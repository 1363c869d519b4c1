package sched

import "slices"

// distrust deals with the blocks that a failing row was to fill. They were in the prefix cache from planning on, so a
// request admitted in the same step may have counted on them. Such a request is preempted: its row's token is dropped,
// what it filled itself leaves the prefix cache, and it computes again what it cannot find.
func (s *Scheduler) distrust(p *Plan, ev *StepDone) {
	next := 0 // cursor into ev.Outputs, which are in plan order
	for i := range p.Requests {
		item := &p.Requests[i]
		if next == len(ev.Outputs) {
			return
		}
		if ev.Outputs[next].ID != item.ID {
			continue
		}
		next++
		if ev.Outputs[next-1].Err == "" || item.r.state != Running {
			continue
		}
		filled := item.r.table.Blocks(0, 0)[item.registered:item.r.table.Registered(0)]
		if len(filled) == 0 {
			continue
		}
		for j := len(p.Requests) - 1; j > i; j-- { // youngest first; only later ones can have found them
			if r := p.Requests[j].r; r.state == Running && slices.ContainsFunc(filled, r.holds) {
				s.takeBack(&p.Requests[j])
			}
		}
	}
}

// takeBack preempts a request whose row of the retiring step means nothing.
func (s *Scheduler) takeBack(item *Planned) {
	r := item.r
	s.running = slices.DeleteFunc(s.running, func(o *request) bool { return o == r })
	s.cache.Unregister(&r.table, item.registered)
	s.preempted = append(s.preempted, r.ID)
	s.preempt(r)
	r.dropStale = true
}
