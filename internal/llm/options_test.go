package llm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKVCacheChoices(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, ""},
		{Options{KVCacheTokens: 4096}, ""},
		{Options{KVCacheTokens: 4100}, "KV cache of 4100 tokens is not a multiple of the block size 16: 4096 and 4112 are"},
		{Options{KVCacheTokens: 4096, KVCacheMemory: 1 << 30}, "KV cache of 4096 tokens and of 1073741824 bytes: give one of the two"},
		{Options{KVCacheTokens: -1}, "KV cache of -1 tokens or 0 bytes: must not be negative"},
	} {
		_, err := c.o.withDefaults()
		if got := errorText(err); got != c.want {
			t.Errorf("withDefaults(%+v) error %q; want %q", c.o, got, c.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestMemoryPlanString(t *testing.T) {
	p := MemoryPlan{
		WeightBytes: 96_436_224, Blocks: 256, BlockSize: 16, BlockBytes: 368_640, Tokens: 4096, MaxModelLen: 8192, LongestRequest: 4097,
		CPU: "avx2", Threads: 2,
	}
	want := "KV cache 256 blocks × 16 = 4096 tokens, 90 MiB; longest request 4097 tokens; weights 92 MiB; avx2, 2 threads"
	if got := p.String(); got != want {
		t.Errorf("plan %s\nwant %s", got, want)
	}
	p.Tokens, p.LongestRequest, p.RequestBytes, p.WholeBytes = 10_000, 8192, 80<<20, 360<<20
	want = "KV cache 256 blocks of 360 KiB hold 10000 tokens, 90 MiB; " +
		"longest request 8192 tokens in 80 MiB, 360 MiB without windows; weights 92 MiB; avx2, 2 threads"
	if got := p.String(); got != want {
		t.Errorf("plan with windows %s\nwant %s", got, want)
	}
	for n, want := range map[int64]string{0: "0 B", 1000: "1000 B", 1536: "1.5 KiB", 3 << 30: "3 GiB", 200 << 40: "200 TiB"} {
		if got := bytesString(n); got != want {
			t.Errorf("bytesString(%d) = %s; want %s", n, got, want)
		}
	}
}

func TestAvailableMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meminfo")
	for _, c := range []struct {
		text string
		want int64
		err  string
	}{
		{"MemTotal:       24576 kB\nMemAvailable:    1024 kB\n", 1 << 20, ""},
		{"MemTotal:       24576 kB\n", 0, "has no MemAvailable"},
		{"MemAvailable:    many kB\n", 0, `parsing "many"`},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := available(path)
		if got != c.want || !strings.Contains(errorText(err), c.err) || (err == nil) != (c.err == "") {
			t.Errorf("available(%q) = %d, %v; want %d, %q", c.text, got, err, c.want, c.err)
		}
	}
}
