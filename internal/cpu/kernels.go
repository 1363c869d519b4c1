package cpu

//go:generate go run ./gen

// kernels are the inner loops of a level. The ones of Generic are the specification of all.
type kernels struct {
	gemmBlocks func(dst []float32, stride int, p panels, x tile, cols int)
	gemmFloats func(dst []float32, stride int, w floatPanels, x floatRows, add bool)
	quantize   func(a *Acts, r int)
	norm       func(dst, x, weight []float32, eps float32)
	silu       func(dst, gate, up []float32)
	gelu       func(dst, gate, up []float32)
	rotate     func(head, cos, sin []float32, interleaved bool)
	add        func(dst, x []float32)
	scale      func(x []float32, factor float32)
	softcap    func(x []float32, limit float32)
	halves     func(dst []uint16, x []float32)
	softmax    func(scores []float32, lo, hi int, scale, limit float32) (top, sum float32)
	mix        func(dst, x []float32, a, b float32)
	divide     func(dst, x []float32, divisor float32)
}

// genericKernels are plain Go.
func genericKernels() kernels {
	return kernels{
		gemmBlocks: gemmBlocks,
		gemmFloats: gemmFloats,
		quantize:   quantizeRow,
		norm:       normRow,
		silu:       siluRow,
		gelu:       geluRow,
		rotate:     rotateHead,
		add:        addRow,
		scale:      scaleRow,
		softcap:    softcapRow,
		halves:     halvesRow,
		softmax:    softmaxRow,
		mix:        mixRow,
		divide:     divideRow,
	}
}
