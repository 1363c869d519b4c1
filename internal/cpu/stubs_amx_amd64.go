package cpu

// The assembly, written by gen; each function's comment there says what it computes.

//go:noescape
func peakIntsAMX(n int)

//go:noescape
func blocksQ8AMX(c *blockCall)

//go:noescape
func blocksQ4AMX(c *blockCall)

//go:noescape
func blocksQ5AMX(c *blockCall)

//go:noescape
func blocksN4AMX(c *blockCall)

//go:noescape
func blocksM4AMX(c *blockCall)

//go:noescape
func blocksQ8MinAMX(c *blockCall)

//go:noescape
func blocksQ4MinAMX(c *blockCall)

//go:noescape
func blocksQ5MinAMX(c *blockCall)

//go:noescape
func blocksQ8KAMX(c *blockCall)

//go:noescape
func blocksQ4KAMX(c *blockCall)

//go:noescape
func blocksQ5KAMX(c *blockCall)

//go:noescape
func blocksB6KAMX(c *blockCall)

//go:noescape
func blocksQ6KAMX(c *blockCall)
