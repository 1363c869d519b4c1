package sim

import (
	"os"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/invariant"
	"github.com/quire-ai/quire/sched"
)

// TestExplore searches all interleavings on tiny machines: no state breaks an invariant or a text, and from every state
// every fair continuation ends.
func TestExplore(t *testing.T) {
	for _, e := range Explorations() {
		t.Run(e.Name, func(t *testing.T) {
			if e.Large && os.Getenv("QUIRE_EXPLORE") == "" {
				t.Skip("a large search: set QUIRE_EXPLORE, or run quire sim explore --large")
			}
			if invariant.Enabled && testing.Short() && strings.HasPrefix(e.Name, "t") {
				t.Skip("two or three requests at once: an audit after each event makes it long")
			}
			found, err := Explore(e)
			if err != nil {
				t.Fatal(err)
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
				found, err := Explore(e)
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
