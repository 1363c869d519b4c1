package cpu

// hasAssembly tells whether this build holds the assembly of the levels above Generic.
const hasAssembly = true

// pause tells the processor that the caller spins.
func pause()

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
