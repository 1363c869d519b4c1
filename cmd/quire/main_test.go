package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quire-ai/quire/internal/invariant"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"quire": main, "mkgguf": mkgguf, "ask": ask, "mkcert": mkcert})
}

// TestScripts runs each transcript of testdata/script against the real command, without network or model downloads.
func TestScripts(t *testing.T) {
	models, err := filepath.Abs("../../internal/model/testdata/tiny")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Setup: func(e *testscript.Env) error {
			e.Setenv("MODELS", models) // tiny models with golden numbers
			port, err := freePort()
			e.Setenv("PORT", port)
			return err
		},
		Condition: func(cond string) (bool, error) {
			if cond == "audits" { // the costly checks of the build tags invariants and race run, and allocate
				return invariant.Enabled, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// TestExitCodes holds what scripts rely on: 0 success, 1 failure, 2 wrong usage.
func TestExitCodes(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want int
	}{
		{nil, exitOK},
		{[]string{"--help"}, exitOK},
		{[]string{"version", "--help"}, exitOK},
		{[]string{"version"}, exitOK},
		{[]string{"verison"}, exitUsage},
		{[]string{"version", "--no-such-flag"}, exitUsage},
		{[]string{"version", "extra"}, exitUsage},
	} {
		c := &console{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}
		if got := run(tc.args, c); got != tc.want {
			t.Errorf("run(%q) = %d, want %d", tc.args, got, tc.want)
		}
	}
}
