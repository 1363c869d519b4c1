package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// Machine code, in which cfg stands for an address of four bytes.
const (
	ldtilecfg   = "\xc4\xe2\x78\x49\x04\x25" // and an address
	tilezero    = "\xc4\xe2\x7b\x49\xc0"
	tilerelease = "\xc4\xe2\x78\x49\xc0"
	ud2         = "\x0f\x0b"
)

// programs are what the traced process does: machine code, where cfg has a configuration of tiles 0 to 2 with 16 rows of
// 64 bytes.
var programs = map[string]struct {
	code      string
	ask       bool // for the kernel's permission
	status    int  // of the process; -1: killed by the signal that the instruction raises
	wantInLog string
}{
	"well":      {ldtilecfg + "cfg" + tilezero + tilerelease, true, 0, "1 LDTILECFG, 1 TILERELEASE, 1 TILEZERO, 0 failures"},
	"unasked":   {ldtilecfg + "cfg" + tilerelease, false, -1, "has not asked for tiles"},
	"unready":   {tilezero, true, -1, "TILEZERO at 0x"},
	"unmapped":  {ldtilecfg + "\x00\x00\x00\x00", true, -1, "#PF: 64 bytes at 0x0"},
	"unended":   {ldtilecfg + "cfg", true, 1, "ends with tiles configured"},
	"repeated":  {ldtilecfg + "cfg" + ldtilecfg + "cfg" + tilerelease, true, 1, "TILERELEASE is missing"},
	"no tile":   {ud2, true, -1, "0 failures"},
	"no action": {"", false, 0, "amxemu: 0 failures"},
}

const programEnv = "AMXEMU_TEST_PROGRAM"

// TestMain lets the test's own binary be the traced program.
func TestMain(m *testing.M) {
	if name := os.Getenv(programEnv); name != "" {
		os.Exit(traced(name))
	}
	os.Exit(m.Run())
}

// traced does what the program of a name says.
func traced(name string) int {
	p := programs[name]
	if null, err := os.Open(os.DevNull); err != nil || unix.Dup2(int(null.Fd()), 2) != nil { // crashes are wanted
		return 9
	}
	if !cpu.X86.HasAMXTile || !cpu.X86.HasAMXInt8 {
		return 10
	}
	if p.ask {
		if _, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archRequestXcomp, xTileData, 0); errno != 0 {
			return 11
		}
		var features uint64
		_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archGetXcompPerm, uintptr(unsafe.Pointer(&features)), 0)
		if errno != 0 || features>>xTileData&1 == 0 {
			return 12
		}
	}
	memory, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_32BIT)
	if err != nil {
		return 13
	}
	address := uintptr(unsafe.Pointer(&memory[0]))
	config := memory[4096:]
	config[0] = 1
	for t := range 3 {
		config[16+2*t], config[48+t] = 64, 16
	}
	cfg := binary.LittleEndian.AppendUint32(nil, uint32(address)+4096)
	copy(memory, strings.ReplaceAll(p.code, "cfg", string(cfg))+"\xc3")
	code := &address
	(*(*func())(unsafe.Pointer(&code)))()
	return 0
}

func TestRun(t *testing.T) {
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			t.Setenv(programEnv, name)
			var log bytes.Buffer
			status, err := run([]string{os.Args[0]}, &log)
			if err != nil && strings.Contains(err.Error(), "CPUID") {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.status >= 0 && status != p.status || p.status < 0 && !slices.Contains([]int{2, 128 + 4, 128 + 11}, status) {
				t.Errorf("status %d, want %d; log:\n%s", status, p.status, &log)
			}
			if !strings.Contains(log.String(), p.wantInLog) {
				t.Errorf("log %q, want %q in it", &log, p.wantInLog)
			}
		})
	}
}

func TestRunOfNothing(t *testing.T) {
	if _, err := run([]string{"/nonexistent/" + strconv.Itoa(os.Getpid())}, &bytes.Buffer{}); err == nil {
		t.Error("no error")
	}
}

// TestCPUID shows that what other software asks for stays as it is.
func TestCPUID(t *testing.T) {
	for leaf := range uint32(0x18) {
		a, b, c, d := cpuid(leaf, 0)
		a2, b2, c2, d2 := cpuidAMX(leaf, 0)
		switch leaf {
		case 0:
			a = max(a, leafMultiply)
		case leafFeatures:
			d |= 1<<24 | 1<<25
		case 1, 0xb, 0xd: // the processor's number, and its state
			b, b2, d, d2, c, c2 = 0, 0, 0, 0, 0, 0
		}
		if a != a2 || b != b2 || c != c2 || d != d2 {
			t.Errorf("leaf %#x: %x %x %x %x, want %x %x %x %x", leaf, a2, b2, c2, d2, a, b, c, d)
		}
	}
}
