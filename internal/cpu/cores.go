package cpu

import (
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// DefaultThreads is the number of workers that this process can keep busy: the processors it may run on, limited by
// its control group's quota (rounded down, at least 1). Above three it leaves one for the rest of the program.
func DefaultThreads() int {
	n := affinity()
	if quota, ok := cgroupQuota("/"); ok {
		n = min(n, max(int(quota), 1))
	}
	if n > 3 {
		n--
	}
	return n
}

// Cores is what limits the number of threads, for people who ask why it is what it is.
type Cores struct {
	Affinity int     // processors this process may run on
	Quota    float64 // processors' worth of time its control group may use, 0 when unlimited
	Default  int     // DefaultThreads
}

// ReadCores reads the limits anew.
func ReadCores() Cores {
	quota, _ := cgroupQuota("/")
	return Cores{Affinity: affinity(), Quota: quota, Default: DefaultThreads()}
}

// affinity is the number of processors this process may run on.
func affinity() int { return max(runtime.NumCPU(), 1) } // NumCPU asks sched_getaffinity on Linux

// cgroupQuota returns how many processors' worth of time the control group may use, the least of its ancestors' too.
// root is "/" except in tests. ok is false where no quota is set or none can be read.
func cgroupQuota(root string) (processors float64, ok bool) {
	membership, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(membership)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy:controllers:path
		if len(fields) != 3 {
			continue
		}
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			var q float64
			var limited bool
			switch {
			case fields[0] == "0" && fields[1] == "":
				q, limited = quotaV2(path.Join(root, "sys/fs/cgroup", dir, "cpu.max"))
			case strings.Contains(","+fields[1]+",", ",cpu,"):
				q, limited = quotaV1(path.Join(root, "sys/fs/cgroup/cpu", dir))
			}
			if limited && (!ok || q < processors) {
				processors, ok = q, true
			}
			if dir == "/" {
				break
			}
		}
	}
	return processors, ok
}

// quotaV2 reads cpu.max: "max 100000" or "quota period", in microseconds.
func quotaV2(file string) (float64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) != 2 {
		return 0, false
	}
	return quotient(fields[0], fields[1])
}

// quotaV1 reads cpu.cfs_quota_us (-1 is no limit) and cpu.cfs_period_us.
func quotaV1(dir string) (float64, bool) {
	quota, err := os.ReadFile(path.Join(dir, "cpu.cfs_quota_us"))
	if err != nil {
		return 0, false
	}
	period, err := os.ReadFile(path.Join(dir, "cpu.cfs_period_us"))
	if err != nil {
		return 0, false
	}
	return quotient(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

func quotient(quota, period string) (float64, bool) {
	q, err := strconv.ParseFloat(quota, 64)
	if err != nil || q <= 0 {
		return 0, false
	}
	p, err := strconv.ParseFloat(period, 64)
	if err != nil || p <= 0 {
		return 0, false
	}
	return q / p, true
}
