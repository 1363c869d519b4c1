package cpu

import (
	"fmt"

	"golang.org/x/sys/cpu"
)

// Level is the set of instructions a Device uses. Every level computes the same bits.
type Level int

// The levels, each faster than the one before.
const (
	Generic    Level = iota // plain Go: the specification, on every processor
	AVX2                    // AVX2, FMA and F16C
	AVX512VNNI              // AVX-512 F, BW, DQ, VL and VNNI
)

// levelNames is indexed by Level; the names are what Detect accepts.
var levelNames = [...]string{Generic: "generic", AVX2: "avx2", AVX512VNNI: "avx512vnni"}

// String returns the name that Detect accepts.
func (l Level) String() string {
	if l < 0 || int(l) >= len(levelNames) {
		return fmt.Sprintf("level %d", int(l))
	}
	return levelNames[l]
}

// Supported tells whether this processor can run l and this build has it.
func (l Level) Supported() bool {
	switch l {
	case Generic:
		return true
	case AVX2:
		return hasAssembly && cpu.X86.HasAVX2 && cpu.X86.HasFMA
	case AVX512VNNI:
		return hasAssembly && cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW &&
			cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VNNI
	}
	return false
}

// Detect returns the best level this processor supports. A name that is not empty and not "auto" forces that level
// (QUIRE_CPU, read by the caller); it is an error when the name is unknown or the processor cannot run it.
func Detect(name string) (Level, error) {
	if name == "" || name == "auto" {
		best := Generic
		for _, l := range Levels() {
			best = l
		}
		return best, nil
	}
	for i, n := range levelNames {
		if n != name {
			continue
		}
		if l := Level(i); l.Supported() {
			return l, nil
		}
		return 0, fmt.Errorf("cpu level %q: this processor or build does not support it", name)
	}
	return 0, fmt.Errorf("cpu level %q: unknown; the levels are %q", name, levelNames)
}

// Levels returns the levels this processor supports, slowest first: tests run each.
func Levels() []Level {
	var supported []Level
	for i := range levelNames {
		if l := Level(i); l.Supported() {
			supported = append(supported, l)
		}
	}
	return supported
}
