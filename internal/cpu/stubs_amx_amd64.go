package cpu

// The assembly, written by gen; each function's comment there says what it computes.

//go:noescape
func peakIntsAMX(n int)

//go:noescape
func blocksQ8AMX(c *blockCall)

//go:noescape
func blocksQ8MinAMX(c *blockCall)

//go:noescape
func blocksQ8KAMX(c *blockCall)

//go:noescape
func blocksB6KAMX(c *blockCall)
