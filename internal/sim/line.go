package sim

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// row is a JSON array of unlike values.
type row = []any

// set stores a field that is always present.
func (l Line) set(key string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic("sim: a trace field is always encodable: " + err.Error())
	}
	v := jsontext.Value(data)
	if err := v.Canonicalize(); err != nil {
		panic("sim: encoded JSON is always valid: " + err.Error())
	}
	l[key] = v
}

// planFields records what Schedule decided.
func (l Line) planFields(s *sched.Scheduler, p *sched.Plan) {
	fresh, cached, tok := []row{}, []row{}, []row{}
	var resumed []sched.RequestID
	spec := map[sched.RequestID]int{}
	for i := range p.Requests {
		r := &p.Requests[i]
		tok = append(tok, row{r.ID, r.N})
		if len(r.Drafts) > 0 {
			spec[r.ID] = len(r.Drafts)
		}
		if r.Kind == sched.KindNew {
			fresh = append(fresh, row{r.ID, r.From, blockLists(r)})
			continue
		}
		if r.Kind == sched.KindResumed {
			resumed = append(resumed, r.ID)
		}
		var blocks any
		if lists := blockLists(r); slices.ContainsFunc(lists, func(b []kv.BlockID) bool { return len(b) > 0 }) {
			blocks = lists
		}
		cached = append(cached, row{r.ID, r.From, blocks, r.Outputs})
	}
	l.set("new", fresh)
	l.set("cached", cached)
	l.set("tok", tok)
	l.set("total", p.TotalTokens)
	setUnlessEmpty(l, "res", resumed)
	if len(spec) > 0 {
		l.set("spec", spec)
	}
	setUnlessEmpty(l, "pre", sortedIDs(p.Preempted))
	setUnlessEmpty(l, "fin", sortedIDs(p.Finished))
	if common := s.CommonPrefixBlocks(); slices.ContainsFunc(common, func(n int) bool { return n > 0 }) {
		l.set("cpb", common)
	}
	var loads []row
	for _, ld := range p.Loads {
		loads = append(loads, row{ld.ID, ld.Tokens, ld.Number})
	}
	setUnlessEmpty(l, "loads", loads)
	l.set("free", s.Pool().Free())
	l.set("rq", collectIDs(s.Running))
	l.set("wq", collectIDs(s.Waiting))
	l.set("sq", collectIDs(s.Deferred))
}

// stateFields records what is left at the end of a step.
func (l Line) stateFields(s *sched.Scheduler) {
	l.set("free2", s.Pool().Free())
	l.set("fq", s.Pool().AppendFree([]kv.BlockID{}, 6))
	l.set("nhash", s.Pool().Keys())
	st := []row{}
	for v := range s.Requests {
		st = append(st, row{v.ID, stateLetter(v.State), v.Computed, v.Known, v.Preemptions})
	}
	l.set("st", st)
}

// eventsField records the KV events since the last update, of steps in flight too: upstream announces a block when it is
// planned. shown is the number of pending events that the last update recorded; it returns the number now.
func (l Line) eventsField(s *sched.Scheduler, shown int) int {
	events := s.AppendEvents(nil)
	pending := s.PendingEvents()
	var rows []row
	for _, e := range append(events, pending...)[shown:] {
		rows = append(rows, eventRow(e))
	}
	setUnlessEmpty(l, "ev", rows)
	return len(pending)
}

func stateLetter(s sched.State) string {
	switch s {
	case sched.Waiting:
		return "W"
	case sched.WaitingForGrammar:
		return "G"
	case sched.WaitingForRemoteKVs:
		return "L"
	case sched.Running:
		return "R"
	case sched.Preempted:
		return "P"
	default:
		return "F"
	}
}

func eventRow(e kv.Event) row {
	hashes := []string{}
	for _, h := range e.Hashes {
		hashes = append(hashes, h.String())
	}
	switch e.Kind {
	case kv.BlockStored:
		var parent any
		if e.HasParent {
			parent = e.Parent.String()
		}
		return row{"S", e.Group, hashes, parent, len(e.Tokens)}
	case kv.BlockRemoved:
		return row{"R", e.Group, hashes}
	default:
		return row{"C"}
	}
}

func blockLists(r *sched.Planned) [][]kv.BlockID {
	lists := [][]kv.BlockID{append([]kv.BlockID{}, r.Blocks...)}
	for _, b := range r.MoreBlocks {
		lists = append(lists, append([]kv.BlockID{}, b...))
	}
	return lists
}

func setUnlessEmpty[T any](l Line, key string, values []T) {
	if len(values) > 0 {
		l.set(key, values)
	}
}

func sortedIDs(ids []sched.RequestID) []sched.RequestID {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func collectIDs(seq func(func(sched.RequestID) bool)) []sched.RequestID {
	ids := []sched.RequestID{}
	for id := range seq {
		ids = append(ids, id)
	}
	return ids
}
