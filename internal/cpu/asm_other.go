//go:build !amd64 && !arm64

package cpu

// hasAssembly tells whether this build holds the assembly of the levels above Generic.
const hasAssembly = false

// pause tells the processor that the caller spins.
func pause() {}

// kernelsOf returns the kernels of a level.
func kernelsOf(Level) kernels { return generic{} }
