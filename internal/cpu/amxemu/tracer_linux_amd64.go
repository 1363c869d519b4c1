package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quire-ai/quire/internal/cpu/amxemu/tile"
)

// tracer follows a program's threads.
type tracer struct {
	process
	granted  bool                // the program asked for tiles
	threads  map[int]*tile.State // by thread id
	code     map[uint64]found    // what lies at an address; programs do not change their code
	executed [tile.OpCount]int
	failures int
	log      io.Writer
}

// found is what a stop at an address asks for.
type found struct {
	inst  tile.Inst
	tile  bool // inst is one
	cpuid bool
}

// run runs a program to its end. What it is refused for, and a summary, go to log.
func run(argv []string, log io.Writer) (status int, err error) {
	runtime.LockOSThread() // ptrace knows its tracer by the thread
	p, err := start(argv)
	if err != nil {
		return 0, err
	}
	t := &tracer{process: p, threads: map[int]*tile.State{p.pid: {}}, code: map[uint64]found{}, log: log}
	if err := t.prepare(); err != nil {
		return 0, err
	}
	if err := unix.PtraceCont(p.pid, 0); err != nil {
		return 0, fmt.Errorf("start %s: %w", argv[0], err)
	}
	status, err = t.follow()
	fmt.Fprintf(log, "amxemu: %s\n", t)
	if t.failures > 0 && status == 0 {
		status = 1
	}
	return status, err
}

// String says what was executed.
func (t *tracer) String() string {
	var b strings.Builder
	for op, n := range t.executed {
		if n > 0 {
			fmt.Fprintf(&b, "%d %v, ", n, tile.Op(op))
		}
	}
	fmt.Fprintf(&b, "%d failures", t.failures)
	return b.String()
}

// fail reports a wrong use of the tiles.
func (t *tracer) fail(thread int, format string, args ...any) {
	t.failures++
	fmt.Fprintf(t.log, "amxemu: thread %d: %s\n", thread, fmt.Sprintf(format, args...))
}

// follow handles stops until the program ends, and returns its status as a shell would.
func (t *tracer) follow() (int, error) {
	for {
		var s unix.WaitStatus
		thread, err := unix.Wait4(-1, &s, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, fmt.Errorf("wait for the program: %w", err)
		case s.Stopped():
			if err := t.stopped(thread, s); err != nil {
				return 0, err
			}
			continue
		}
		if t.threads[thread] != nil && t.threads[thread].Configured() {
			t.fail(thread, "ends with tiles configured")
		}
		delete(t.threads, thread)
		if thread != t.pid {
			continue
		}
		if s.Signaled() {
			return 128 + int(s.Signal()), nil
		}
		return s.ExitStatus(), nil
	}
}

// stopped handles a stop and lets the thread go on.
func (t *tracer) stopped(thread int, s unix.WaitStatus) error {
	signal := s.StopSignal()
	known := t.threads[thread] != nil
	if !known {
		t.threads[thread] = &tile.State{}
	}
	handled := false
	var err error
	switch {
	case signal == unix.SIGTRAP && s.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
		handled, err = true, t.answer(thread)
	case signal == unix.SIGTRAP && s.TrapCause() > 0:
		handled = true // a new thread was made; it stops by itself
	case signal == unix.SIGSTOP && !known:
		handled = true // the first stop of a new thread
	case signal == unix.SIGILL || signal == unix.SIGSEGV:
		handled, err = t.execute(thread)
	}
	if err != nil && err != unix.ESRCH { // ESRCH: killed meanwhile
		return err
	}
	if handled {
		signal = 0
	}
	if err := unix.PtraceCont(thread, int(signal)); err != nil && err != unix.ESRCH {
		return fmt.Errorf("continue thread %d: %w", thread, err)
	}
	return nil
}

// answer does what the kernel of a machine with AMX would for arch_prctl.
func (t *tracer) answer(thread int) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(thread, &regs); err != nil {
		return err
	}
	const tiles = 1<<xTileConfig | 1<<xTileData
	var result unix.Errno
	switch question, argument := regs.Rdi, regs.Rsi; {
	case question == archRequestXcomp && argument == xTileData:
		t.granted = true
	case question == archRequestXcomp:
		result = unix.EOPNOTSUPP
	default:
		features := uint64(7) // x87, SSE, AVX
		if question == archGetXcompSupport || t.granted {
			features |= tiles
		}
		b := make([]byte, 8)
		for i := range b {
			b[i] = byte(features >> (8 * i))
		}
		if t.Write(b, argument) != nil {
			result = unix.EFAULT
		}
	}
	regs.Orig_rax = ^uint64(0) // the kernel itself is not asked
	regs.Rax = uint64(-int64(result))
	return unix.PtraceSetRegs(thread, &regs)
}

// execute runs the tile instructions at the thread's place, or answers CPUID. handled is false when there is neither, or
// when the processor would refuse the instruction.
func (t *tracer) execute(thread int) (handled bool, err error) {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(thread, &regs); err != nil {
		return false, err
	}
	for {
		f := t.at(regs.Rip)
		switch {
		case f.cpuid:
			a, b, c, d := cpuidAMX(uint32(regs.Rax), uint32(regs.Rcx))
			regs.Rax, regs.Rbx, regs.Rcx, regs.Rdx = uint64(a), uint64(b), uint64(c), uint64(d)
			regs.Rip += 2
		case f.tile:
			if err := t.tile(thread, f.inst, &regs); err != nil {
				t.fail(thread, "%v at %#x: %v", f.inst.Op, regs.Rip, err)
				return false, unix.PtraceSetRegs(thread, &regs)
			}
			regs.Rip += uint64(f.inst.Bytes)
		default:
			if !handled {
				return false, nil
			}
			return true, unix.PtraceSetRegs(thread, &regs)
		}
		handled = true
	}
}

// at decodes what lies at an address.
func (t *tracer) at(address uint64) found {
	if f, ok := t.code[address]; ok {
		return f
	}
	var f found
	b := make([]byte, tile.MaxBytes)
	if t.Read(b, address) == nil {
		f.cpuid = b[0] == 0x0f && b[1] == 0xa2
		inst, err := tile.Decode(b)
		f.inst, f.tile = inst, err == nil
	}
	t.code[address] = f
	return f
}

// tile executes one instruction.
func (t *tracer) tile(thread int, i tile.Inst, regs *unix.PtraceRegs) error {
	state := t.threads[thread]
	if !t.granted {
		return fmt.Errorf("#NM: the program has not asked for tiles (arch_prctl)")
	}
	if i.Op == tile.LoadConfig && state.Configured() {
		t.fail(thread, "tiles are configured at %#x, and were still from before: TILERELEASE is missing", regs.Rip)
	}
	t.executed[i.Op]++
	address := uint64(int64(i.Displacement)) + register(regs, i.Base)
	stride := register(regs, i.Index) * uint64(i.Scale)
	if i.Op == tile.LoadConfig || i.Op == tile.StoreConfig {
		address += stride
	}
	return state.Execute(i, t, address, stride)
}

// register returns the value of the register with a number of the encoding.
func register(r *unix.PtraceRegs, number int) uint64 {
	if number == tile.None {
		return 0
	}
	return [...]uint64{
		r.Rax, r.Rcx, r.Rdx, r.Rbx, r.Rsp, r.Rbp, r.Rsi, r.Rdi, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15,
	}[number]
}
