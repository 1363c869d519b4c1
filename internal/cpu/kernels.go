package cpu

// kernels are the inner loops of a level. The ones of Generic are the specification of all.
type kernels struct {
	gemmBlocks func(dst []float32, stride int, p panel, x tile, cols int)
	gemmFloats func(dst []float32, dstStride int, w floats, x []float32, xStride, rows, k int, add bool)
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
	merge      func(total, part *partial)
}

// kernelsOf returns the kernels of a level.
func kernelsOf(Level) kernels {
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
		merge:      mergePartials,
	}
}
