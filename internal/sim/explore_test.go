package sim

import (
	"os"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/sched"
)

// TestExplore searches all interleavings on tiny machines: no state breaks an invariant or a text, and from every state
// every fair continuation ends. Together they take every kind of action, under both policies, with one step in flight and two.
func TestExplore(t *testing.T) {
	taken := map[string]bool{}
	defer func() {
		for _, kind := range []string{"add", "schedule", "spoil", "done", "load-done", "load-fail", "abort", "reset"} {
			for _, where := range []string{"fcfs", "policy=priority", "depth=2"} {
				if !t.Failed() && !testing.Short() && !taken[where+" "+kind] {
					t.Errorf("no search takes the action %s under %s", kind, where)
				}
			}
		}
	}()
	for _, e := range Explorations() {
		t.Run(e.Name, func(t *testing.T) {
			if e.Large && os.Getenv("QUIRE_EXPLORE") == "" {
				t.Skip("a large search: set QUIRE_EXPLORE, or run quire sim explore --large")
			}
			if invariant.Enabled && testing.Short() && strings.HasPrefix(e.Name, "t") {
				t.Skip("two or three requests at once: an audit after each event makes it long")
			}
			found, err := Explore(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			for kind := range found.Actions {
				for _, where := range []string{"policy=priority", "depth=2"} {
					taken[where+" "+kind] = taken[where+" "+kind] || strings.Contains(e.Pool, where)
				}
				taken["fcfs "+kind] = taken["fcfs "+kind] || !strings.Contains(e.Pool, "priority")
			}
			if found.Fault != "" {
				t.Errorf("%s\n%s\n----", found.Fault, strings.Join(found.Play, "\n"))
			}
			t.Logf("%d states, %d edges", found.States, found.Edges)
		})
	}
}

// TestExploreFindsKnownBugs puts published bugs in, and demands that the search finds each.
func TestExploreFindsKnownBugs(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault sched.Fault
		in    string // the exploration that finds it
	}{
		{"mistral.rs #2043", sched.FaultPopsFront, "two under pressure"},
		{"vLLM #31583", sched.FaultLoadForgets, "preempted, then loaded"},
		{"hash of a withdrawn victim (D1)", sched.FaultNoTakeBack, "a victim already planned"},
		{"one-token prompt loads for ever (D2)", sched.FaultLoadsAgain, "one-token prompt"},
		{"loaded behind a head that cannot fit (D3)", sched.FaultNoRecovery, "loaded behind a head"},
		{"lone prefill thrash (D4)", sched.FaultNoReclaim, "lone prefill"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, e := range Explorations() {
				if e.Name != c.in {
					continue
				}
				e.Fault = c.fault
				found, err := Explore(t.Context(), e)
				if err != nil {
					t.Fatal(err)
				}
				if found.Fault == "" {
					t.Fatalf("not found in %d states", found.States)
				}
				t.Logf("%d states: %s\n%s\n----", found.States, found.Fault, strings.Join(found.Play, "\n"))
				return
			}
			t.Fatalf("no exploration %q", c.in)
		})
	}
}
