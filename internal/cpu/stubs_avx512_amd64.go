package cpu

// The assembly, written by gen; each function's comment there says what it computes. n is a multiple of 16.

//go:noescape
func blocksQ8AVX512(c *blockCall)

//go:noescape
func blocksQ4AVX512(c *blockCall)

//go:noescape
func blocksQ5AVX512(c *blockCall)

//go:noescape
func blocksN4AVX512(c *blockCall)

//go:noescape
func blocksM4AVX512(c *blockCall)

//go:noescape
func blocksQ8MinAVX512(c *blockCall)

//go:noescape
func blocksQ4MinAVX512(c *blockCall)

//go:noescape
func blocksQ5MinAVX512(c *blockCall)

//go:noescape
func blocksQ8KAVX512(c *blockCall)

//go:noescape
func blocksQ4KAVX512(c *blockCall)

//go:noescape
func blocksQ5KAVX512(c *blockCall)

//go:noescape
func blocksB6KAVX512(c *blockCall)

//go:noescape
func blocksQ6KAVX512(c *blockCall)

//go:noescape
func floatsF32AVX512(c *floatCall)

//go:noescape
func floatsF16AVX512(c *floatCall)

//go:noescape
func floatsBF16AVX512(c *floatCall)

//go:noescape
func addAVX512(dst, x *float32, n int)

//go:noescape
func scaleAVX512(x *float32, n int, factor float32)

//go:noescape
func divideAVX512(dst, x *float32, n int, divisor float32)

//go:noescape
func mixAVX512(dst, x *float32, n int, a, b float32)

//go:noescape
func weighAVX512(dst, x, weight *float32, n int, factor float32)

//go:noescape
func softcapAVX512(x *float32, n int, limit float32)

//go:noescape
func halvesAVX512(dst *uint16, x *float32, n int)

//go:noescape
func siluAVX512(dst, gate, up *float32, n int)

//go:noescape
func geluAVX512(dst, gate, up *float32, n int)

//go:noescape
func rotatePairsAVX512(x, cos, sin *float32, n int)

//go:noescape
func rotateHalvesAVX512(low, high, cos, sin *float32, n int)

//go:noescape
func sumSquaresAVX512(sums *[lanes]float32, x *float32, n int)

//go:noescape
func softmaxAVX512(c *softmaxCall)

//go:noescape
func quantizeAVX512(c *quantizeCall)

//go:noescape
func peakIntsAVX512(n int)

//go:noescape
func peakFloatsAVX512(n int)

//go:noescape
func peakReadAVX512(p *byte, n int)

//go:noescape
func unpack4AVX512(c *unpackCall)

//go:noescape
func unpack5AVX512(c *unpackCall)

//go:noescape
func unpack6AVX512(c *unpackCall)

//go:noescape
func unpackN4AVX512(c *unpackCall)

//go:noescape
func mergeAVX512(a, b, top, sum, partTop, partSum *float32, n int)

//go:noescape
func greatestAVX512(top, x *float32, n int)

//go:noescape
func weightsAVX512(dst *float32, sums *[lanes]float32, x *float32, n int, top, inverse, least float32)
