package cpu

// hasAssembly tells whether this build holds the assembly of the levels above Generic.
const hasAssembly = false

// pause tells the processor that the caller spins.
func pause() {}
