package cpu

import "unsafe"

const (
	alignment = 64       // bytes: a cache line, and the widest vector
	slabBytes = 64 << 20 // of one mapping; pages nobody writes cost nothing
)

// arena hands out aligned memory from large mappings, so that many small matrices share huge pages. Everything is
// given back at once.
type arena struct {
	slabs [][]byte
	free  []byte // rest of the last slab
}

// alloc returns size zeroed bytes, aligned to 64.
func (a *arena) alloc(size int) ([]byte, error) {
	size = roundUp(max(size, 1), alignment)
	if size > len(a.free) {
		slab, err := Alloc(max(size, slabBytes))
		if err != nil {
			return nil, err
		}
		a.slabs = append(a.slabs, slab)
		a.free = slab
	}
	b := a.free[:size:size]
	a.free = a.free[size:]
	return b, nil
}

// release gives all memory back.
func (a *arena) release() error {
	var first error
	for _, slab := range a.slabs {
		if err := Free(slab); err != nil && first == nil {
			first = err
		}
	}
	a.slabs, a.free = nil, nil
	return first
}

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// Views of raw memory as numbers. The memory is aligned by alloc and little-endian by the package's formats.
func float32s(b []byte) []float32 { return view[float32](b, 4) }
func uint16s(b []byte) []uint16   { return view[uint16](b, 2) }
func int8s(b []byte) []int8       { return view[int8](b, 1) }
func int32s(b []byte) []int32     { return view[int32](b, 4) }

func view[T any](b []byte, size int) []T {
	if len(b) < size {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

// bytesOf is the memory of x.
func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
