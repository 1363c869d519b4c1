package cpu

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/cpu"
)

// Level is the set of instructions a Device uses. Every level computes the same bits.
type Level int

// The levels, each faster than the one before.
const (
	Generic    Level = iota // plain Go: the specification, on every processor
	AVX2                    // AVX2, FMA and F16C
	AVX512VNNI              // AVX-512 F, BW, DQ, VL and VNNI
	AMX                     // the same, with AMX-TILE and AMX-INT8 for products of many rows
	NEON                    // arm64's SDOT for products of Q8_0 and Q4_0 and FMLA for those of floats; else plain Go
)

// levelNames is indexed by Level; the names are what Detect accepts.
var levelNames = [...]string{Generic: "generic", AVX2: "avx2", AVX512VNNI: "avx512vnni", AMX: "amx", NEON: "neon"}

// String returns the name that Detect accepts.
func (l Level) String() string {
	if l < 0 || int(l) >= len(levelNames) {
		return fmt.Sprintf("level %d", int(l))
	}
	return levelNames[l]
}

// Supported tells whether this processor can run l and this build has it.
func (l Level) Supported() bool { return l.Check() == nil }

// Check says why this processor, system or build cannot run l; nil when it can. For AMX it asks the kernel to let this
// process use tiles.
func (l Level) Check() error {
	if l == Generic {
		return nil
	}
	if l < 0 || int(l) >= len(levelNames) {
		return errors.New("no such level")
	}
	if !hasAssembly {
		return errors.New("this build has no assembly")
	}
	missing := func(name string, has ...bool) error {
		if slices.Contains(has, false) {
			return fmt.Errorf("the processor has no %s", name)
		}
		return nil
	}
	if l == NEON {
		return missing("dot product of bytes (ASIMDDP)", cpu.ARM64.HasASIMDDP)
	}
	x := &cpu.X86
	if err := missing("AVX2 with FMA", x.HasAVX2, x.HasFMA); err != nil || l == AVX2 {
		return err
	}
	err := missing("AVX-512 with F, BW, DQ, VL and VNNI", x.HasAVX512F, x.HasAVX512BW, x.HasAVX512DQ, x.HasAVX512VL, x.HasAVX512VNNI)
	if err != nil || l == AVX512VNNI {
		return err
	}
	if err := missing("AMX-TILE and AMX-INT8", x.HasAMXTile, x.HasAMXInt8); err != nil {
		return err
	}
	return requestTiles()
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
		if err := Level(i).Check(); err != nil {
			return 0, fmt.Errorf("cpu level %q: %w", name, err)
		}
		return Level(i), nil
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
