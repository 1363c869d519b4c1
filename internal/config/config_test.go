package config

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write docs/configuration.md instead of comparing it")

// TestManual holds docs/configuration.md together with the tags.
func TestManual(t *testing.T) {
	const file = "../../docs/configuration.md"
	want := Manual()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s does not match the tags of Serve: run make generate", file)
	}
}

// parse fills a Serve as the command line does.
func parse(t *testing.T, args ...string) (*Serve, error) {
	t.Helper()
	var c Serve
	parser, err := kong.New(&c, kong.DefaultEnvars("QUIRE"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return &c, err
}

func TestDefaultsAreValid(t *testing.T) {
	c, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.HTTP.Host != "127.0.0.1" || c.HTTP.Port != 8000 || c.HTTP.MaxRequestBytes != 16<<20 || !c.Cache.EnablePrefixCaching ||
		time.Duration(c.HTTP.ShutdownTimeout) != 25*time.Second {
		t.Errorf("defaults are not the documented ones: %+v", c)
	}
}

// TestFlagNames holds the names of the manual against those kong gives the fields: each documented flag parses.
func TestFlagNames(t *testing.T) {
	for line := range strings.Lines(Manual()) {
		name, _, found := strings.Cut(strings.TrimPrefix(line, "| `--"), "`")
		if !found || name == line || !strings.HasPrefix(line, "| `--") {
			continue
		}
		if _, err := parse(t, "--"+name); err != nil && strings.Contains(err.Error(), "unknown flag") {
			t.Errorf("the manual has --%s: %v", name, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("QUIRE_LONG_PREFILL_TOKEN_THRESHOLD", "4096")
	t.Setenv("QUIRE_MAX_NUM_SEQS", "7")
	t.Setenv("QUIRE_API_KEY", "a,b")
	t.Setenv("QUIRE_CPU", "generic")
	c, err := parse(t, "--max-num-seqs=8", "--no-enable-prefix-caching", "--kv-cache-memory-bytes=1.5GiB", "--shutdown-timeout=90")
	if err != nil {
		t.Fatal(err)
	}
	if c.Scheduler.LongPrefillTokenThreshold != 4096 || c.Scheduler.MaxNumSeqs != 8 || len(c.HTTP.APIKey) != 2 || c.CPU.CPU != "generic" ||
		c.Cache.EnablePrefixCaching || c.Cache.KVCacheMemory != 3<<29 || c.HTTP.ShutdownTimeout.String() != "1m30s" {
		t.Errorf("got %+v", c)
	}
}

// TestValidateReportsEveryFault holds that one run shows all that is wrong, with the flag, the value and the range.
func TestValidateReportsEveryFault(t *testing.T) {
	_, got := parse(t, "--port=70000", "--max-num-seqs=0", "--watermark=2", "--kv-cache-tokens=100", "--kv-cache-memory=1g",
		"--api-key=", "--no-enable-chunked-prefill", "--max-model-len=4096", "--log-stats-interval=0", "--max-request-bytes=0",
		"--stall-timeout=0", "--stream-interval=0", "--ssl-keyfile=k.pem")
	if got == nil {
		t.Fatal("kong, which calls Validate, found no fault")
	}
	want := `--stream-interval must be at least 1, got 0
--max-num-seqs must be at least 1, got 0
--port must be in [0, 65535], got 70000
--watermark must be in [0, 1], got 2
--kv-cache-tokens and --kv-cache-memory both give the size of the KV cache: leave one out
--kv-cache-tokens must be a multiple of the block size 16, got 100
without chunked prefill --max-num-batched-tokens must be at least --max-model-len 4096, got 512
--max-request-bytes must be at least 1, got 0
--log-stats-interval must be above 0; --disable-log-stats turns the line off
--stall-timeout must be above 0, got 0s
--ssl-certfile and --ssl-keyfile belong together: give both or neither
--api-key must not be empty: leave it out to serve without one`
	if got.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestExposed(t *testing.T) {
	for _, tc := range []struct {
		host string
		keys []string
		want bool
	}{
		{"127.0.0.1", nil, false},
		{"::1", nil, false},
		{"localhost", nil, false},
		{"0.0.0.0", nil, true},
		{"example.org", nil, true},
		{"0.0.0.0", []string{"k"}, false},
	} {
		c := Serve{HTTP: HTTP{Host: tc.host, APIKey: tc.keys}}
		if got := c.Exposed(); got != tc.want {
			t.Errorf("Exposed(%s, %v) = %v, want %v", tc.host, tc.keys, got, tc.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "65536": 65536, "1k": 1024, "512MiB": 512 << 20, "2 GB": 2e9, "1.5g": 3 << 29, "1TiB": 1 << 40, "7b": 7,
	} {
		var got Bytes
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("Bytes(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1e30", "1XB", "1..2", "NaN", "9223372036854775807T"} {
		var got Bytes
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("Bytes(%q) = %d, want an error", text, got)
		}
	}
	for n, want := range map[Bytes]string{0: "0 B", 1023: "1023 B", 16 << 20: "16 MiB", 1536 << 20: "1.5 GiB", 123456789: "117.7 MiB"} {
		if got := n.String(); got != want {
			t.Errorf("Bytes(%d) is written %q, want %q", int64(n), got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "30": 30 * time.Second, "0.5": time.Second / 2, "1m30s": 90 * time.Second} {
		var got Seconds
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("Seconds(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "-1s", "1e12", "NaN"} {
		var got Seconds
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("Seconds(%q) = %v, want an error", text, got)
		}
	}
}

func TestBudget(t *testing.T) {
	for text, want := range map[string]Budget{"auto": Auto, "off": 0, "0": 0, "4GiB": 4 << 30, "Auto": Auto} {
		var b Budget
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q is %v, %v; want %v", text, b, err, want)
		}
	}
	var b Budget
	if err := b.UnmarshalText([]byte("lots")); err == nil || !strings.Contains(err.Error(), "nor auto or off") {
		t.Errorf("lots: %v", err)
	}
}
