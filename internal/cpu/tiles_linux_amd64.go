package cpu

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// requestTiles asks the kernel to let all threads of this process use AMX's tiles, which it allows only to those who ask
// (Linux, Documentation/arch/x86/xstate.rst). It grants what the processor has enabled (XCR0) and nothing else, and
// asking again changes nothing.
func requestTiles() error {
	const (
		archRequestXcomp = 0x1023 // ARCH_REQ_XCOMP_PERM
		xTileData        = 18     // XSAVE's component
	)
	if _, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archRequestXcomp, xTileData, 0); errno != 0 {
		return fmt.Errorf("the kernel does not let this process use AMX tiles: arch_prctl: %w", errno)
	}
	return nil
}
