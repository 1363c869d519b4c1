package sim

import (
	"slices"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// store plays the recorded connector: it holds, for each request, the tokens its header says, takes as many steps and
// fails as told.
type store struct {
	blockSize  int
	step       int  // of the driving loop
	onlyLoaded bool // a load fails only in blocks that it fills; recorded ones may name blocks of the local hit too
	ext        map[sched.RequestID]*storeEntry
	sync       []kv.BlockID // blocks that synchronous loads could not fill since the last report
	due        []transfer
	loads      map[sched.RequestID]transfer // the last load of each request
}

type storeEntry struct {
	Ext
	loads int
}

type transfer struct {
	id    sched.RequestID
	epoch sched.Epoch
	at    int // step
	send  bool
	bad   []kv.BlockID

	tables   [][]kv.BlockID // of a load: those of the cache groups then
	from, to int            // tokens
}

func newStore(requests []TraceRequest, blockSize int) *store {
	st := &store{blockSize: blockSize, ext: map[sched.RequestID]*storeEntry{}, loads: map[sched.RequestID]transfer{}}
	for i := range requests {
		if e := requests[i].External; e != nil {
			st.ext[sched.RequestID(requests[i].ID)] = &storeEntry{Ext: *e}
		}
	}
	return st
}

// Match implements sched.Connector. It counts attempts, as the recorded one did.
func (st *store) Match(q sched.MatchQuery) sched.Match {
	e := st.ext[q.Request.ID]
	if e == nil {
		return sched.Match{}
	}
	if e.Defers > 0 {
		e.Defers--
		return sched.Match{Deferred: true}
	}
	if e.Reload != nil && !*e.Reload && e.loads > 0 {
		return sched.Match{}
	}
	hit := min(e.Hit, len(q.Tokens))
	if e.Mode == "sync" {
		hit = min(hit, len(q.Tokens)-1) / st.blockSize * st.blockSize
	}
	n := max(0, hit-q.Local)
	return sched.Match{Tokens: n, Async: e.Mode == "async" && n > 0}
}

// Finished implements sched.Connector: a request that ended by itself may keep its blocks until they are sent.
func (st *store) Finished(id sched.RequestID, epoch sched.Epoch, reason sched.Reason) bool {
	e := st.ext[id]
	if e == nil || e.SendDelay <= 0 || (reason != sched.ReasonStop && reason != sched.ReasonLength) {
		return false
	}
	st.due = append(st.due, transfer{id: id, epoch: epoch, at: st.step + e.SendDelay, send: true})
	return true
}

// begin starts a load of the plan.
func (st *store) begin(l sched.Load) {
	e := st.ext[l.ID]
	e.loads++
	times := 1
	if e.FailTimes != nil {
		times = *e.FailTimes
	}
	var bad []kv.BlockID
	if e.loads <= times {
		for _, i := range e.FailBlocks {
			if i >= len(l.Tables[0]) || st.onlyLoaded && (i+1)*st.blockSize <= l.From {
				continue
			}
			g := 0 // recorded ones name blocks of the first group
			if st.onlyLoaded {
				g = (i + e.loads) % len(l.Tables)
			}
			if b := l.Tables[g][i]; b != kv.Null {
				bad = append(bad, b)
			}
		}
	}
	t := transfer{
		id: l.ID, epoch: l.Epoch, at: st.step + e.Latency, bad: bad,
		tables: cloneTables(l.Tables), from: l.From, to: l.From + l.Tokens,
	}
	st.loads[l.ID] = t
	if !l.Async {
		st.sync = append(st.sync, bad...)
		return
	}
	st.due = append(st.due, t)
}

// cloneTables returns a copy of what is a view in a plan.
func cloneTables(tables [][]kv.BlockID) [][]kv.BlockID {
	copies := make([][]kv.BlockID, len(tables))
	for g := range tables {
		copies[g] = slices.Clone(tables[g])
	}
	return copies
}

// report is what a connector tells the scheduler with a step's update.
type report struct {
	received, sent []transfer
	bad            []kv.BlockID
}

// take returns what is due in this step.
func (st *store) take() report {
	var rep report
	rep.bad, st.sync = st.sync, nil
	var later []transfer
	for _, t := range st.due {
		switch {
		case t.at > st.step:
			later = append(later, t)
		case t.send:
			rep.sent = append(rep.sent, t)
		default:
			rep.received = append(rep.received, t)
			rep.bad = append(rep.bad, t.bad...)
		}
	}
	st.due = later
	byID := func(a, b transfer) int { return compareIDs(a.id, b.id) }
	slices.SortStableFunc(rep.received, byID)
	slices.SortStableFunc(rep.sent, byID)
	slices.Sort(rep.bad)
	rep.bad = slices.Compact(rep.bad)
	return rep
}

func compareIDs(a, b sched.RequestID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
