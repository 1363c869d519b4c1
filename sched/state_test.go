package sched_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quire-ai/quire/sched"
)

// The state table is shown in two documents: as a list of moves and as a drawing. -rewrite draws both anew.
func TestStatesDrawing(t *testing.T) {
	for name, draw := range map[string]func() string{"../docs/scheduler.md": stateTable, "../ARCHITECTURE.md": stateDiagram} {
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
		want := before + begin + draw() + end + after
		if *rewrite {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if string(doc) != want {
			t.Errorf("%s: the states differ from State.Next; run go test ./sched -rewrite", name)
		}
	}
}

// stateTable lists the moves as a Markdown table.
func stateTable() string {
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
	return b.String()
}

// stateDiagram draws the moves in Mermaid's language. Moves to a finished state are one arrow: its states are told in the
// table.
func stateDiagram() string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	for s := sched.StateNew; !s.Finished(); s++ {
		from, ends := s.String(), false
		if s == sched.StateNew {
			from = "[*]"
		}
		for _, to := range s.Next() {
			if to.Finished() {
				ends = true
				continue
			}
			fmt.Fprintf(&b, "    %s --> %v\n", from, to)
		}
		if ends {
			fmt.Fprintf(&b, "    %s --> [*]\n", from)
		}
	}
	b.WriteString("```\n")
	return b.String()
}
