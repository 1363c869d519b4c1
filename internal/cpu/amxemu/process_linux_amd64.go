package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// process is a program under ptrace. Its methods must be called from the thread that started it, while the thread of the
// program they concern is stopped.
type process struct{ pid int }

// start starts a program and stops it before its first instruction.
func start(argv []string) (process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return process{}, err
	}
	p := process{cmd.Process.Pid}
	var status unix.WaitStatus
	if _, err := unix.Wait4(p.pid, &status, unix.WALL, nil); err != nil {
		return p, fmt.Errorf("wait for %s: %w", argv[0], err)
	}
	if !status.Stopped() {
		return p, fmt.Errorf("%s did not stop at its start: status %#x", argv[0], status)
	}
	const options = unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACESECCOMP
	if err := unix.PtraceSetOptions(p.pid, options); err != nil {
		return p, fmt.Errorf("set ptrace options: %w", err)
	}
	return p, nil
}

// Numbers of arch_prctl (Linux, arch/x86/include/uapi/asm/prctl.h) and of XSAVE's components (Intel's Software
// Developer's Manual, volume 1, §13.1).
const (
	archSetCPUID        = 0x1012
	archGetXcompSupport = 0x1021
	archGetXcompPerm    = 0x1022
	archRequestXcomp    = 0x1023

	xTileConfig = 17
	xTileData   = 18
)

// prepare makes CPUID fault, and the questions about AMX stop, in the program's thread and all that it will start.
func (p process) prepare() error {
	var before unix.PtraceRegs
	if err := unix.PtraceGetRegs(p.pid, &before); err != nil {
		return fmt.Errorf("read registers: %w", err)
	}
	if errno, err := p.inject(unix.SYS_ARCH_PRCTL, archSetCPUID, 0); err != nil || errno != 0 {
		return fmt.Errorf("make CPUID fault: %w: this processor or kernel cannot", either(err, errno))
	}
	program := bpf()
	at := before.Rsp - 2048 // below the stack's end, where the program has nothing yet
	header := make([]byte, 16)
	binary.LittleEndian.PutUint16(header, uint16(len(program)/8))
	binary.LittleEndian.PutUint64(header[8:], at+16)
	if err := p.Write(append(header, program...), at); err != nil {
		return err
	}
	if errno, err := p.inject(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil || errno != 0 {
		return fmt.Errorf("give up privileges: %w", either(err, errno))
	}
	if errno, err := p.inject(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, at); err != nil || errno != 0 {
		return fmt.Errorf("filter system calls: %w", either(err, errno))
	}
	return nil
}

// either is err, or else errno.
func either(err error, errno syscall.Errno) error {
	if err != nil {
		return err
	}
	return errno
}

// bpf is a filter of system calls that lets the tracer answer arch_prctl's questions about AMX.
func bpf() []byte {
	const (
		load        = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		jumpEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		jumpAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		jumpAbove   = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
		answer      = unix.BPF_RET | unix.BPF_K

		number, arch, argument = 0, 4, 16 // offsets in struct seccomp_data
	)
	var b []byte
	for _, f := range []unix.SockFilter{
		{Code: load, K: arch},
		{Code: jumpEqual, Jf: 6, K: unix.AUDIT_ARCH_X86_64},
		{Code: load, K: number},
		{Code: jumpEqual, Jf: 4, K: unix.SYS_ARCH_PRCTL},
		{Code: load, K: argument},
		{Code: jumpAtLeast, Jf: 2, K: archGetXcompSupport},
		{Code: jumpAbove, Jt: 1, K: archRequestXcomp},
		{Code: answer, K: unix.SECCOMP_RET_TRACE},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	} {
		b = binary.LittleEndian.AppendUint16(b, f.Code)
		b = append(b, f.Jt, f.Jf)
		b = binary.LittleEndian.AppendUint32(b, f.K)
	}
	return b
}

// inject makes the stopped program call the system.
func (p process) inject(number uint64, args ...uint64) (syscall.Errno, error) {
	var before unix.PtraceRegs
	if err := unix.PtraceGetRegs(p.pid, &before); err != nil {
		return 0, fmt.Errorf("read registers: %w", err)
	}
	code := make([]byte, 2)
	if _, err := unix.PtracePeekText(p.pid, uintptr(before.Rip), code); err != nil {
		return 0, fmt.Errorf("read code: %w", err)
	}
	if _, err := unix.PtracePokeText(p.pid, uintptr(before.Rip), []byte{0x0f, 0x05}); err != nil { // SYSCALL
		return 0, fmt.Errorf("write code: %w", err)
	}
	regs := before
	regs.Rax, regs.Orig_rax = number, ^uint64(0)
	args = append(args, 0, 0, 0, 0, 0)
	regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8 = args[0], args[1], args[2], args[3], args[4]
	if err := unix.PtraceSetRegs(p.pid, &regs); err != nil {
		return 0, fmt.Errorf("write registers: %w", err)
	}
	if err := unix.PtraceSingleStep(p.pid); err != nil {
		return 0, fmt.Errorf("step: %w", err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(p.pid, &status, unix.WALL, nil); err != nil {
		return 0, fmt.Errorf("wait for a step: %w", err)
	}
	if err := unix.PtraceGetRegs(p.pid, &regs); err != nil {
		return 0, fmt.Errorf("read registers: %w", err)
	}
	if _, err := unix.PtracePokeText(p.pid, uintptr(before.Rip), code); err != nil {
		return 0, fmt.Errorf("restore code: %w", err)
	}
	if err := unix.PtraceSetRegs(p.pid, &before); err != nil {
		return 0, fmt.Errorf("restore registers: %w", err)
	}
	if result := int64(regs.Rax); result < 0 {
		return syscall.Errno(-result), nil
	}
	return 0, nil
}

// Read fills b with the program's memory at address, which must be mapped as a whole.
func (p process) Read(b []byte, address uint64) error {
	n, err := unix.ProcessVMReadv(p.pid, local(b), remote(b, address), 0)
	if err != nil || n != len(b) {
		return fmt.Errorf("#PF: %d bytes at %#x cannot be read: %w", len(b), address, either(err, unix.EFAULT))
	}
	return nil
}

// Write copies b to the program's memory at address, which must be mapped as a whole.
func (p process) Write(b []byte, address uint64) error {
	n, err := unix.ProcessVMWritev(p.pid, local(b), remote(b, address), 0)
	if err != nil || n != len(b) {
		return fmt.Errorf("#PF: %d bytes at %#x cannot be written: %w", len(b), address, either(err, unix.EFAULT))
	}
	return nil
}

func local(b []byte) []unix.Iovec {
	return []unix.Iovec{{Base: unsafe.SliceData(b), Len: uint64(len(b))}}
}

func remote(b []byte, address uint64) []unix.RemoteIovec {
	return []unix.RemoteIovec{{Base: uintptr(address), Len: len(b)}}
}
