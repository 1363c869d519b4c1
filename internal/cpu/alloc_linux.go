package cpu

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Alloc returns size zeroed bytes outside the Go heap, page-aligned, on huge pages where the system has them: the
// collector never scans them and the address cache covers more of them. Free gives them back.
func Alloc(size int) ([]byte, error) {
	if size <= 0 {
		return nil, fmt.Errorf("allocate %d bytes: not a size", size)
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes: mmap: %w", size, err)
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // advice only: a kernel without huge pages refuses it
	return b, nil
}

// Free gives back what Alloc returned; it must be the whole slice, and nobody may use it any more.
func Free(b []byte) error {
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("free %d bytes: munmap: %w", len(b), err)
	}
	return nil
}
