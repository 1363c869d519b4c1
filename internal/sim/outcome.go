package sim

import (
	"fmt"
	"slices"

	"github.com/quire-ai/quire/sched"
)

// Verdict is how a replay went.
type Verdict string

// The verdicts.
const (
	Equal   Verdict = "equal"   // every field of every step
	Differs Verdict = "differs" // by a documented rule; safe and complete to the end
	Drained Verdict = "drained" // a trace in which upstream never finishes: here everything finished
	Skipped Verdict = "skipped" // a trace needs a feature that is not implemented
	Failed  Verdict = "failed"
)

// Features returns the features of traces that can be replayed, by their tags.
func Features() []string {
	return []string{
		"async_load", "async_scheduling", "defer_match", "deferred_block_free", "delayed_free", "hazard", "hybrid_groups",
		"kv_events", "load_failure", "lora", "pause", "pipeline_depth_2", "sliding_window", "spec_decode",
		"structured_output_wait", "sync_load",
	}
}

// Result is the outcome of replaying one trace.
type Result struct {
	Verdict Verdict
	Steps   int        // replayed
	Rule    sched.Rule // Differs: the rule
	At      int        // Differs: the step of its use
	Why     string     // Failed: the first fault; Differs: the first difference
}

// String renders the result on one line.
func (r Result) String() string {
	switch r.Verdict {
	case Differs:
		return fmt.Sprintf("differs by rule %v at step %d", r.Rule, r.At)
	case Failed, Skipped:
		return string(r.Verdict) + ": " + r.Why
	default:
		return fmt.Sprintf("%s (%d steps)", r.Verdict, r.Steps)
	}
}

// Hazard tells whether upstream never finished the trace.
func (t *Trace) Hazard() bool {
	return slices.Contains(t.Header.Features, "hazard") || t.End.Reason == "stuck" || t.End.Reason == "max_steps"
}

// ReplayFile reads a trace and replays it.
func ReplayFile(name string) Result {
	t, err := ReadTraceFile(name)
	if err != nil {
		return Result{Verdict: Failed, Why: err.Error()}
	}
	for _, f := range t.Header.Features {
		if !slices.Contains(Features(), f) {
			return Result{Verdict: Skipped, Why: "feature " + f + " is not implemented"}
		}
	}
	return Replay(t)
}

// Replay runs the trace's events through the real scheduler and compares each step with the record. A hazard trace is
// not compared: upstream never finished it, and the scheduler must.
func Replay(t *Trace) (result Result) {
	defer func() {
		if r := recover(); r != nil {
			result = Result{Verdict: Failed, Why: fmt.Sprintf("panic: %v", r)}
		}
	}()
	d, err := newDriver(&t.Header)
	if err != nil {
		return Result{Verdict: Failed, Why: err.Error()}
	}
	hazard := t.Hazard()
	differs := ""
	var rule applied
	for d.step < len(t.Steps) || differs != "" || hazard {
		if d.finished() && (differs != "" || hazard) {
			break
		}
		if limit := d.stepLimit(hazard); d.step > limit {
			return Result{Verdict: Failed, Steps: d.step, Why: fmt.Sprintf("not drained after %d steps; %s", limit, d.explain())}
		}
		step := d.step
		got := d.next()
		if hazard || differs != "" {
			continue
		}
		if key := diff(t.Steps[step], got); key != "" {
			differs = describe(step, key, t.Steps[step], got)
			if len(d.rules) == 0 {
				return Result{Verdict: Failed, Steps: step, Why: differs}
			}
			rule = d.rules[len(d.rules)-1]
		}
	}
	if fault := d.check(); fault != "" {
		return Result{Verdict: Failed, Steps: d.step, Why: fault}
	}
	switch {
	case hazard:
		return Result{Verdict: Drained, Steps: d.step}
	case differs != "":
		return Result{Verdict: Differs, Steps: d.step, Rule: rule.rule, At: rule.step, Why: differs}
	}
	return Result{Verdict: Equal, Steps: d.step}
}

// stepLimit is the number of steps after which a run counts as stuck: four times the header's tokens, prompt and output;
// a trace that upstream drained may have long pauses in it.
func (d *driver) stepLimit(hazard bool) int {
	n := 0
	for i := range d.h.Requests {
		r := &d.h.Requests[i]
		for _, seg := range r.Prompt {
			n += seg[2]
		}
		n += r.MaxTokens
	}
	if hazard {
		return 4 * n
	}
	return max(4*n, len(d.h.Requests)+1000)
}

// explain says what a run that does not end waits for.
func (d *driver) explain() string {
	e := d.s.Explain()
	return fmt.Sprintf("%d of %d requests ended, head %q: %s", len(d.ends), len(d.order), e.Head, e.Why)
}

// check returns the first fault of a finished run: outputs out of order or cut short, a request without an end, blocks
// not returned.
func (d *driver) check() string {
	for _, r := range d.order {
		id := sched.RequestID(r.ID)
		end, ok := d.ends[id]
		if !ok {
			if len(d.order) == d.added {
				return fmt.Sprintf("request %s never ended", id)
			}
			continue
		}
		for k, want := range d.wantText(r, len(d.text[id])) {
			if token := d.text[id][k]; token != want {
				return fmt.Sprintf("request %s: output %d is %d, want %d", id, k, token, want)
			}
		}
		if end.Kind == sched.Finished && end.Outputs != len(d.text[id]) {
			return fmt.Sprintf("request %s: %d outputs emitted, %d counted", id, len(d.text[id]), end.Outputs)
		}
	}
	if err := d.s.Audit(); err != nil {
		return err.Error()
	}
	if st := d.s.Stats(); st.FreeBlocks != st.UsableBlocks {
		return fmt.Sprintf("%d of %d blocks are free at the end", st.FreeBlocks, st.UsableBlocks)
	}
	return ""
}

// wantText returns the first n output tokens the request must get, whatever was scheduled.
func (d *driver) wantText(r *TraceRequest, n int) []int32 {
	if d.toy != nil {
		return solo(r.promptTokens(), n, d.h.Config.BlockSize, r.ends())
	}
	want := make([]int32, n)
	for k := range want {
		want[k] = r.output(k)
	}
	return want
}
