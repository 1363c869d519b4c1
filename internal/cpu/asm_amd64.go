package cpu

import "unsafe"

// hasAssembly tells whether this build holds the assembly of the levels above Generic.
const hasAssembly = true

// pause tells the processor that the caller spins.
func pause()

// prefetch asks for n bytes, a multiple of 64, to be brought into the second level's cache.
//
//go:noescape
func prefetch(p unsafe.Pointer, n int)

// kernelsOf returns the kernels of a level.
func kernelsOf(l Level) kernels {
	switch l {
	case AMX:
		return amxKernels()
	case AVX512VNNI:
		return avx512Kernels()
	case AVX2:
		return avx2Kernels()
	}
	return generic{}
}
