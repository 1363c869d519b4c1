//go:build unix

package valkeytest

import "syscall"

const (
	stop   = syscall.SIGSTOP
	resume = syscall.SIGCONT
)
