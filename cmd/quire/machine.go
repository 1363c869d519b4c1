package main

import (
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// machine is what the system says of itself. Zero and empty mean that it does not say.
type machine struct {
	CPUModel    string   `json:"cpu_model"`
	CPUFlags    []string `json:"-"`
	MemoryTotal int64    `json:"memory_total_bytes"`
	MemoryFree  int64    `json:"memory_available_bytes"` // without swapping, page cache included
	MemoryLimit int64    `json:"memory_limit_bytes"`     // of the control group; 0 is none
	HugePages   string   `json:"transparent_huge_pages"` // always, madvise or never
}

// readMachine reads /proc and /sys below root, which is "/" except in tests.
func readMachine(root string) machine {
	var m machine
	for line := range linesOf(root, "proc/cpuinfo") {
		switch key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) {
		case "model name":
			m.CPUModel = strings.TrimSpace(value)
		case "flags", "Features":
			m.CPUFlags = strings.Fields(value)
		}
		if m.CPUFlags != nil && m.CPUModel != "" {
			break
		}
	}
	for line := range linesOf(root, "proc/meminfo") {
		switch key, value, _ := strings.Cut(line, ":"); key {
		case "MemTotal":
			m.MemoryTotal = kilobytes(value)
		case "MemAvailable":
			m.MemoryFree = kilobytes(value)
		}
	}
	m.MemoryLimit = memoryLimit(root)
	for line := range linesOf(root, "sys/kernel/mm/transparent_hugepage/enabled") {
		if _, rest, ok := strings.Cut(line, "["); ok {
			m.HugePages, _, _ = strings.Cut(rest, "]")
		}
	}
	return m
}

// linesOf yields the lines of a file that may not be there.
func linesOf(root, name string) iter.Seq[string] {
	data, _ := os.ReadFile(filepath.Join(root, name))
	return strings.Lines(string(data))
}

// kilobytes reads "16316412 kB".
func kilobytes(value string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
	return n << 10
}

// memoryLimit is the least limit of this process's control group and the groups above it; 0 is none.
func memoryLimit(root string) int64 {
	least := int64(0)
	for line := range linesOf(root, "proc/self/cgroup") {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy:controllers:path
		if len(fields) != 3 {
			continue
		}
		base, file := "sys/fs/cgroup", "memory.max"
		if fields[1] == "memory" {
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if fields[0] != "0" {
			continue
		}
		for dir := filepath.Clean("/" + fields[2]); ; dir = filepath.Dir(dir) {
			data, _ := os.ReadFile(filepath.Join(root, base, dir, file))
			limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
			if err == nil && limit > 0 && limit < 1<<60 && (least == 0 || limit < least) {
				least = limit
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}
