package server

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTranscripts plays HTTP requests against the toy model and compares the answers, byte for byte. The commands:
//
//	server [seqs=N] [max-len=N] [key=K]      starts a server
//	script                                   answers every request with the tokens that follow, divided by ·; without any,
//	                                         the toy answers by its own mind
//	get PATH [HEADER=VALUE]…                 sends a request and shows status, headers worth knowing, and body
//	post PATH [HEADER=VALUE]…                the same with the body that follows
//
// Ids that the server draws and times are replaced.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var f *fixture
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "server":
				var s setup
				d.MaybeScanArgs(t, "seqs", &s.seqs)
				d.MaybeScanArgs(t, "max-len", &s.maxLen)
				d.MaybeScanArgs(t, "interval", &s.options.StreamInterval)
				if d.HasArg("key") {
					s.options.APIKeys = make([]string, 1)
					d.ScanArgs(t, "key", &s.options.APIKeys[0])
				}
				f = newFixture(t, s)
				return ""
			case "script":
				f.script.Store(nil)
				if fields := strings.Split(d.Input, "·"); d.Input != "" {
					f.play(fields...)
				}
				return ""
			case "get", "post", "put":
				return f.transcript(t, d)
			}
			t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

var drawn = regexp.MustCompile(`"created":\d+|(chatcmpl|cmpl)-[0-9a-f]{32}`)

// transcript sends a request and shows the answer.
func (f *fixture) transcript(t *testing.T, d *datadriven.TestData) string {
	var header []string
	path := d.CmdArgs[0].Key
	for _, arg := range d.CmdArgs[1:] {
		header = append(header, arg.Key, strings.ReplaceAll(arg.Vals[0], "%20", " "))
	}
	rec := f.do(strings.ToUpper(d.Cmd), path, d.Input, header...)
	f.t = t
	f.idle()
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", rec.Code, rec.Header().Get("Content-Type"))
	for _, name := range []string{"Allow", "Retry-After", "WWW-Authenticate"} {
		if v := rec.Header().Get(name); v != "" {
			fmt.Fprintf(&b, ", %s: %s", name, v)
		}
	}
	b.WriteByte('\n')
	b.WriteString(drawn.ReplaceAllStringFunc(rec.Body.String(), func(s string) string {
		if kind, _, ok := strings.Cut(s, "-"); ok {
			return kind + "-ID"
		}
		return `"created":0`
	}))
	return b.String()
}
