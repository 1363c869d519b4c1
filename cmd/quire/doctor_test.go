package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadMachine holds what is read of a Linux system, with control groups of either version.
func TestReadMachine(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  machine
	}{
		{"nothing", nil, machine{}},
		{"version 2", map[string]string{
			"proc/cpuinfo":                               "processor\t: 0\nmodel name\t: Some CPU @ 2GHz\nflags\t\t: fpu avx2 fma\n",
			"proc/meminfo":                               "MemTotal:       16316412 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n",
			"proc/self/cgroup":                           "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":               "max\n",
			"sys/fs/cgroup/a/memory.max":                 "2147483648\n",
			"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
		}, machine{
			CPUModel: "Some CPU @ 2GHz", CPUFlags: []string{"fpu", "avx2", "fma"}, MemoryTotal: 16316412 << 10,
			MemoryFree: 8000000 << 10, MemoryLimit: 2 << 30, HugePages: "madvise",
		}},
		{"version 1", map[string]string{
			"proc/self/cgroup": "4:memory:/x\n1:cpu:/\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
		}, machine{MemoryLimit: 1 << 30}},
	} {
		root := t.TempDir()
		for name, text := range tc.files {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(tc.want, readMachine(root)); diff != "" {
			t.Errorf("%s: -want +got\n%s", tc.name, diff)
		}
	}
}

// TestAdvice holds that each thing to change is said once, and nothing when all is well.
func TestAdvice(t *testing.T) {
	well := diagnosis{Level: "avx512vnni", Affinity: 4, machine: machine{MemoryFree: 8 << 30, HugePages: "madvise"}}
	well.Cache.Models = 1
	for _, tc := range []struct {
		change func(*diagnosis)
		want   string
	}{
		{func(*diagnosis) {}, ""},
		{func(d *diagnosis) { d.Level = "generic" }, "plain Go"},
		{func(d *diagnosis) { d.Level, d.Missing = "avx2", []string{"avx512_vnni"} }, "twice as fast"},
		{func(d *diagnosis) { d.Refused = "the processor has no AMX" }, ""},
		{func(d *diagnosis) { d.Refused, d.CPUFlags = "arch_prctl: invalid argument", []string{"amx_int8"} }, "but arch_prctl: invalid"},
		{func(d *diagnosis) { d.Quota = 1.5 }, "allows 1.5 of 4 processors"},
		{func(d *diagnosis) { d.HugePages = "never" }, "huge pages are off"},
		{func(d *diagnosis) { d.MemoryLimit = 512 << 20 }, "only 536.9 MB of memory is free"},
		{func(d *diagnosis) { d.Cache.Models = 0 }, "quire pull"},
		{func(d *diagnosis) { d.Cache.Fault = "write /x: permission denied" }, "models cannot be kept: write /x"},
	} {
		d := well
		d.Advice = nil
		tc.change(&d)
		d.advise()
		if got := strings.Join(d.Advice, "\n"); !strings.Contains(got, tc.want) || tc.want == "" && got != "" || len(d.Advice) > 1 {
			t.Errorf("advice %q, want %q alone", got, tc.want)
		}
	}
}
