// Command amxemu runs a program on a Linux machine whose processor has no AMX as if it had: it follows all threads of
// the program and executes the tile instructions that stop them, each thread having tiles of its own as on hardware.
//
//	go build -o /tmp/amxemu ./internal/cpu/amxemu
//	go test -exec /tmp/amxemu ./internal/cpu
//
// The program is not changed and asks for AMX in the usual way: CPUID is made to fault and answered with AMX in it, and
// the kernel's permission (arch_prctl) is answered by this command. That needs a processor that can make CPUID fault
// (cpuid_fault in /proc/cpuinfo; Intel's have it, also for virtual machines).
//
// A use that hardware would refuse stops the program with SIGILL or SIGSEGV, with the reason on standard error. A use that
// hardware allows but leaves tiles configured when a kernel has ended is a failure as well. The exit status is the
// program's, or 1 after a failure, or 125 when the program could not be run. It is no tool for measuring: an
// instruction takes some microseconds.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: amxemu PROGRAM [ARGUMENT...]")
		os.Exit(125)
	}
	status, err := run(os.Args[1:], os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "amxemu:", err)
		os.Exit(125)
	}
	os.Exit(status)
}
