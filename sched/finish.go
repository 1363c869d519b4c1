package sched

// ending is how a request ends.
type ending struct {
	reason Reason
	token  *int32 // the stop token, if one ended it
	err    error
	cached int // prompt tokens found, if that was too little
}

// state returns the terminal state of the reason.
func (r Reason) state() State {
	switch r {
	case ReasonStop:
		return FinishedStopped
	case ReasonLength:
		return FinishedLength
	case ReasonAbort:
		return FinishedAborted
	case ReasonCacheThreshold:
		return FinishedCacheThreshold
	default:
		return FinishedError
	}
}

// finish gives r its one terminal answer, from any state. Its blocks return now, or when the transfers that use them
// have ended. A running request stays in the running list until the caller sweeps it.
func (s *Scheduler) finish(r *request, e ending) {
	if r.queue != nil {
		r.queue.remove(r)
	}
	loading := r.state == WaitingForRemoteKVs && !r.load.done()
	r.epoch++
	s.move(r, e.reason.state())
	c := Change{Kind: Finished, ID: r.ID, Reason: e.reason, Err: e.err, Outputs: r.outputs(), Preemptions: r.preemptions, Cached: e.cached}
	if e.token != nil {
		c.StopToken, c.Stopped = *e.token, true
	}
	s.changes = append(s.changes, c)
	s.counters.Finished[e.reason]++
	s.finished = append(s.finished, r.ID)
	r.prefilling = false
	if s.cfg.Connector != nil {
		if !loading { // a load still writes its blocks
			s.cache.Trim(&r.table, max(0, r.computed-r.inFlight)) // what no window reaches is not sent
		}
		r.sending = s.cfg.Connector.Finished(r.ID, r.epoch, e.reason)
	}
	if loading || r.sending {
		return
	}
	s.forget(r)
}

// forget returns the blocks of a finished request and drops it.
func (s *Scheduler) forget(r *request) {
	s.release(r)
	s.unlinkLive(r)
	delete(s.requests, r.ID)
}

// abort ends a request at the caller's wish. Unknown and finished ids are no error: the answer may have crossed it.
func (s *Scheduler) abort(id RequestID) {
	r := s.requests[id]
	if r == nil || r.state.Finished() {
		s.stale(id, "nothing to abort")
		return
	}
	wasRunning := r.state == Running
	s.finish(r, ending{reason: ReasonAbort})
	if wasRunning {
		s.sweepRunning()
	}
}
