package sched_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quire-ai/quire/sched"
)

// TestStatesDrawing holds the table of moves in docs/scheduler.md to the code; -rewrite draws it anew.
func TestStatesDrawing(t *testing.T) {
	const name = "../docs/scheduler.md"
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- states: begin -->\n", "<!-- states: end -->"
	before, rest, ok := strings.Cut(string(doc), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the states", name)
	}
	var b strings.Builder
	b.WriteString("\n| from | to |\n|---|---|\n")
	for s := sched.StateNew; !s.Finished(); s++ {
		var next []string
		for _, to := range s.Next() {
			next = append(next, to.String())
		}
		fmt.Fprintf(&b, "| %v | %s |\n", s, strings.Join(next, ", "))
	}
	b.WriteString("\n")
	want := before + begin + b.String() + end + after
	if *rewrite {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(doc) != want {
		t.Errorf("%s: the states differ from State.Next; run go test ./sched -rewrite", name)
	}
}
