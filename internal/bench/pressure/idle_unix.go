//go:build unix

package pressure

import (
	"time"

	"golang.org/x/sys/unix"
)

// idleCPU returns the share of one core that the process uses while it is left alone.
func idleCPU(d time.Duration) float64 {
	before := cpuTime()
	time.Sleep(d)
	return float64(cpuTime()-before) / float64(d)
}

// cpuTime is what the process has used so far.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
