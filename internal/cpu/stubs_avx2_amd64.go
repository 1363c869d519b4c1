package cpu

// The assembly, written by gen; each function's comment there says what it computes. n is a multiple of 16.

//go:noescape
func blocksQ8AVX2(c *blockCall)

//go:noescape
func blocksQ4AVX2(c *blockCall)

//go:noescape
func blocksQ5AVX2(c *blockCall)

//go:noescape
func blocksN4AVX2(c *blockCall)

//go:noescape
func blocksM4AVX2(c *blockCall)

//go:noescape
func blocksQ8MinAVX2(c *blockCall)

//go:noescape
func blocksQ4MinAVX2(c *blockCall)

//go:noescape
func blocksQ5MinAVX2(c *blockCall)

//go:noescape
func blocksQ8KAVX2(c *blockCall)

//go:noescape
func blocksQ4KAVX2(c *blockCall)

//go:noescape
func blocksQ5KAVX2(c *blockCall)

//go:noescape
func blocksB6KAVX2(c *blockCall)

//go:noescape
func blocksQ6KAVX2(c *blockCall)

//go:noescape
func floatsF32AVX2(c *floatCall)

//go:noescape
func floatsF16AVX2(c *floatCall)

//go:noescape
func floatsBF16AVX2(c *floatCall)

//go:noescape
func addAVX2(dst, x *float32, n int)

//go:noescape
func scaleAVX2(x *float32, n int, factor float32)

//go:noescape
func divideAVX2(dst, x *float32, n int, divisor float32)

//go:noescape
func mixAVX2(dst, x *float32, n int, a, b float32)

//go:noescape
func weighAVX2(dst, x, weight *float32, n int, factor float32)

//go:noescape
func softcapAVX2(x *float32, n int, limit float32)

//go:noescape
func halvesAVX2(dst *uint16, x *float32, n int)

//go:noescape
func siluAVX2(dst, gate, up *float32, n int)

//go:noescape
func geluAVX2(dst, gate, up *float32, n int)

//go:noescape
func rotatePairsAVX2(x, cos, sin *float32, n int)

//go:noescape
func rotateHalvesAVX2(low, high, cos, sin *float32, n int)

//go:noescape
func sumSquaresAVX2(sums *[lanes]float32, x *float32, n int)

//go:noescape
func softmaxAVX2(c *softmaxCall)

//go:noescape
func quantizeAVX2(c *quantizeCall)

//go:noescape
func peakIntsAVX2(n int)

//go:noescape
func peakFloatsAVX2(n int)

//go:noescape
func peakReadAVX2(p *byte, n int)

//go:noescape
func unpack4AVX2(c *unpackCall)

//go:noescape
func unpack5AVX2(c *unpackCall)

//go:noescape
func unpack6AVX2(c *unpackCall)

//go:noescape
func unpackN4AVX2(c *unpackCall)

//go:noescape
func mergeAVX2(a, b, top, sum, partTop, partSum *float32, n int)

//go:noescape
func greatestAVX2(top, x *float32, n int)

//go:noescape
func weightsAVX2(dst *float32, sums *[lanes]float32, x *float32, n int, top, inverse, least float32)
