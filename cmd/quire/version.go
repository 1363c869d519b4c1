package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionCmd prints what was built.
type versionCmd struct{}

// Run prints one line.
func (versionCmd) Run(c *console) error {
	_, err := fmt.Fprintf(c.Out, "quire %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version names the build: the module version when installed as one, else the revision of the checkout, else "devel".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = "+" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ".dirty"
		}
	}
	return "devel" + revision + modified
}
