package sim

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/quire-ai/quire/sched"
)

// Outcome is what a made-up run came to.
type Outcome struct {
	Steps       int
	Requests    int
	Preemptions int
	Rules       map[sched.Rule]int // uses of the rules
	Fault       string             // empty if all checks held
	Lines       []Line             // the steps, if they were asked for
}

// Run plays a scenario with every check on: the scheduler's own invariants, an audit of all its state after each step,
// that it drains within a bound, that everybody gets exactly one answer, and that every text is that of the request run
// alone.
func Run(h *Header, record bool) (out Outcome) {
	out.Requests = len(h.Requests)
	d, err := newDriver(h)
	if err != nil {
		out.Fault = err.Error()
		return out
	}
	defer func() {
		if r := recover(); r != nil {
			out.Fault = fmt.Sprintf("step %d: panic: %v", d.step, r)
		}
		out.Steps = d.step
		out.Preemptions = int(d.s.Stats().Preemptions)
		out.Rules = map[sched.Rule]int{}
		for _, r := range d.rules {
			out.Rules[r.rule]++
		}
	}()
	limit := d.stepLimit(false)
	for !d.finished() {
		if d.step > limit {
			out.Fault = fmt.Sprintf("not drained after %d steps; %s", limit, d.explain())
			return out
		}
		l := d.next()
		if record {
			out.Lines = append(out.Lines, l)
		}
		if err := d.s.Audit(); err != nil {
			out.Fault = fmt.Sprintf("step %d: %v", d.step-1, err)
			return out
		}
	}
	out.Fault = cmp.Or(d.check(), d.fair.fault)
	return out
}

// Shrink returns a smaller scenario that still fails: requests and operations left out, lengths cut, as long as a fault
// remains.
func Shrink(h *Header) *Header {
	for {
		smaller := shrinkOnce(h)
		if smaller == nil {
			return h
		}
		h = smaller
	}
}

// shrinkOnce returns the first simpler scenario that fails, nil if none does.
func shrinkOnce(h *Header) *Header {
	for i := range h.Requests {
		s := *h
		s.Requests = slices.Delete(slices.Clone(h.Requests), i, i+1)
		if fails(&s) {
			return &s
		}
	}
	for i := range h.Ops {
		s := *h
		s.Ops = slices.Delete(slices.Clone(h.Ops), i, i+1)
		if fails(&s) {
			return &s
		}
	}
	for i := range h.Requests {
		for _, change := range simplifications() {
			s := *h
			s.Requests = slices.Clone(h.Requests)
			r := s.Requests[i]
			r.Prompt = slices.Clone(r.Prompt)
			if change(&r) {
				s.Requests[i] = r
				if fails(&s) {
					return &s
				}
			}
		}
	}
	return nil
}

// simplifications returns changes that make a request simpler; each tells whether it changed anything.
func simplifications() []func(*TraceRequest) bool {
	return []func(*TraceRequest) bool{
		func(r *TraceRequest) bool { r.MaxTokens /= 2; return r.MaxTokens > 0 },
		func(r *TraceRequest) bool { r.MaxTokens--; return r.MaxTokens > 0 },
		func(r *TraceRequest) bool { n := &r.Prompt[len(r.Prompt)-1][2]; *n /= 2; return *n > 0 },
		func(r *TraceRequest) bool { n := &r.Prompt[len(r.Prompt)-1][2]; *n--; return *n > 0 },
		func(r *TraceRequest) bool { n := &r.Prompt[0][2]; *n--; return *n >= 0 && len(r.Prompt) > 1 },
		func(r *TraceRequest) bool { was := r.Arrive; r.Arrive = 0; return was > 0 },
		func(r *TraceRequest) bool { was := r.External; r.External = nil; return was != nil },
		func(r *TraceRequest) bool { was := r.EOSAt; r.EOSAt, r.MinTokens = nil, 0; return was != nil },
		func(r *TraceRequest) bool { was := r.StopAt; r.StopAt = nil; return was != nil },
		func(r *TraceRequest) bool { was := r.FailAt; r.FailAt = nil; return was != nil },
		func(r *TraceRequest) bool { was := r.LoRA; r.LoRA = nil; return was != nil },
		func(r *TraceRequest) bool { was := r.Salt; r.Salt = ""; return was != "" },
	}
}

func fails(h *Header) bool { return h.check() == nil && Run(h, false).Fault != "" }

// WriteTrace writes a run in the format of recorded traces, so that it can be compared and replayed.
func WriteTrace(w io.Writer, h *Header, out Outcome) error {
	bw := bufio.NewWriter(w)
	end := End{Reason: "drained", Steps: out.Steps, Preemptions: out.Preemptions, Finished: map[string]string{}}
	if out.Fault != "" {
		end.Reason = "stuck"
	}
	lines := []any{h}
	for _, l := range out.Lines {
		lines = append(lines, l)
	}
	lines = append(lines, struct {
		Type string `json:"t"`
		End
	}{"end", end})
	for _, l := range lines {
		data, err := json.Marshal(l, json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("write trace %s: %w", h.Name, err)
		}
		bw.Write(append(data, '\n'))
	}
	return bw.Flush()
}

func sortOps(ops []Op) {
	slices.SortStableFunc(ops, func(a, b Op) int { return cmp.Compare(a.Step, b.Step) })
}
