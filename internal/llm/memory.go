package llm

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// FreeMemory returns the bytes this process may still take without pushing others out: what the kernel says is
// available, or what is left of the control group's limit, whichever is less.
func FreeMemory() (int64, error) {
	free, err := available("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	limit, err := readNumber("/sys/fs/cgroup/memory.max")
	if err != nil {
		return free, nil // no limit, no such control group, or not Linux's second kind
	}
	used, err := readNumber("/sys/fs/cgroup/memory.current")
	if err != nil {
		return free, nil
	}
	return max(0, min(free, limit-used)), nil
}

func available(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("read free memory: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read free memory: %s: %w", path, err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("read free memory: %s has no MemAvailable", path)
}

// readNumber reads a file with one number. cgroup's "max" is an error like any other text.
func readNumber(path string) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
}
