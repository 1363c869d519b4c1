package cpu

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCgroupQuota(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
		ok    bool
	}{
		"none": {map[string]string{}, 0, false},
		"v2, the parent's is less": {map[string]string{
			"proc/self/cgroup":              "0::/pod/box\n",
			"sys/fs/cgroup/pod/box/cpu.max": "max 100000\n",
			"sys/fs/cgroup/pod/cpu.max":     "250000 100000\n",
		}, 2.5, true},
		"v2, unlimited": {map[string]string{
			"proc/self/cgroup":      "0::/\n",
			"sys/fs/cgroup/cpu.max": "max 100000\n",
		}, 0, false},
		"v1": {map[string]string{
			"proc/self/cgroup":                        "4:memory:/x\n2:cpu,cpuacct:/box\n",
			"sys/fs/cgroup/cpu/box/cpu.cfs_quota_us":  "150000\n",
			"sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":      "-1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":     "100000\n",
		}, 1.5, true},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := cgroupQuota(root); got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, ok, c.want, c.ok)
		}
	}
	if n := DefaultThreads(); n < 1 || n > affinity() {
		t.Errorf("DefaultThreads() = %d on %d processors", n, affinity())
	}
}

func TestDetect(t *testing.T) {
	best, err := Detect("")
	if err != nil || !best.Supported() {
		t.Fatalf("Detect() = %v, %v", best, err)
	}
	for _, l := range Levels() {
		if got, err := Detect(l.String()); got != l || err != nil || l > best {
			t.Errorf("Detect(%v) = %v, %v; the best is %v", l, got, err, best)
		}
	}
	if _, err := Detect("sse9"); err == nil {
		t.Error("Detect(sse9) finds a level")
	}
}
