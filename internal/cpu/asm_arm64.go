package cpu

// hasAssembly tells whether this build holds the assembly of the levels above Generic.
const hasAssembly = true

// pause tells the processor that the caller spins.
func pause()

// kernelsOf returns the kernels of a level.
func kernelsOf(l Level) kernels {
	if l == NEON {
		return neonKernels()
	}
	return generic{}
}
