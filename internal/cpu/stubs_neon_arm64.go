package cpu

// The assembly, written by gen; each function's comment there says what it computes.

//go:noescape
func blocksQ8NEON(c *blockCall)

//go:noescape
func blocksQ4NEON(c *blockCall)

//go:noescape
func floatsF32NEON(c *floatCall)

//go:noescape
func floatsF16NEON(c *floatCall)

//go:noescape
func floatsBF16NEON(c *floatCall)

func peakIntsNEON(n int)

func peakFloatsNEON(n int)

//go:noescape
func peakReadNEON(p *byte, n int)
