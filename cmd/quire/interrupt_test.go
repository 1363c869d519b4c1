package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"
)

// ^C ends a command with the exit code of shells, and a line that says how far it got, not "context canceled".
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		run  func(*console) error
		want string
	}{
		{
			func(c *console) error { return (&simRunCmd{Seed: 7, Count: 100, Profile: "mixed"}).Run(ctx, c) },
			"quire: interrupted after 0 of 100 seeds, without a fault\n",
		},
		{
			func(c *console) error { return (&simExploreCmd{Only: "three loads"}).Run(ctx, c) },
			"quire: interrupted after 1 states of the search \"three loads\", without a fault\n",
		},
		{func(*console) error { return fmt.Errorf("bench engine: prefill 512: %w", ctx.Err()) }, "quire: interrupted\n"},
	} {
		var out, errOut bytes.Buffer
		con := &console{Out: &out, Err: &errOut}
		if code := fail(con, c.run(con)); code != exitInterrupted || errOut.String() != c.want {
			t.Errorf("exit code %d, %q; want %d, %q", code, &errOut, exitInterrupted, c.want)
		}
	}
}
