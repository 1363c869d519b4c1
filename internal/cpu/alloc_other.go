//go:build !linux

package cpu

import (
	"fmt"
	"unsafe"
)

// Alloc returns size zeroed bytes, 64-byte aligned. Free gives them back.
func Alloc(size int) ([]byte, error) {
	if size <= 0 {
		return nil, fmt.Errorf("allocate %d bytes: not a size", size)
	}
	b := make([]byte, size+alignment)
	skip := -uintptr(unsafe.Pointer(&b[0])) & (alignment - 1)
	return b[skip:][:size:size], nil
}

// Free gives back what Alloc returned; here the collector does.
func Free([]byte) error { return nil }
