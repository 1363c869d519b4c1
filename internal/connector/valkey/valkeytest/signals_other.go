//go:build !unix

package valkeytest

import "syscall"

// Numbers that no such system knows: sending one fails the test. Neither server runs there.
const (
	stop   = syscall.Signal(-1)
	resume = syscall.Signal(-2)
)
