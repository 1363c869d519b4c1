// Package invariant states what must hold. Check is always on: it guards against Quire's own mistakes, never
// against the world's (those are errors). Costly audits hide behind Enabled, which is true under the build tags
// "invariants" and "race".
package invariant

import "fmt"

// Check panics with the formatted message unless ok holds. The message says the positive fact that was violated
// and cites the invariant's number from the caller's doc.go, for example "invariant 1: release of free block 7".
//
// Callers on hot paths must keep the arguments cheap: they are evaluated also when ok holds.
func Check(ok bool, format string, args ...any) {
	if !ok {
		Broken(format, args...)
	}
}

// Broken panics with the formatted message. It is Check for hot paths, where even boxing the arguments would allocate:
// the caller writes the condition as an if.
func Broken(format string, args ...any) {
	panic("invariant violated: " + fmt.Sprintf(format, args...))
}
