package cpu

//go:generate go run ./gen

// kernels are the inner loops of a level. Those of generic are the specification of all.
type kernels interface {
	gemmBlocks(dst []float32, stride int, p panels, x tiles, cols int)
	gemmFloats(dst []float32, stride int, w floatPanels, x floatRows)
	unpack(dst []byte, l layout, numbers []byte, cols int)
	unpacks(k kind, rows int) bool // whether it pays to unpack the numbers of a panel first, for a product of so many rows
	quantize(a *Acts, r, first, end int)
	norm(dst, x, weight []float32, eps float32)
	silu(dst, gate, up []float32)
	gelu(dst, gate, up []float32)
	rotate(head, cos, sin []float32, interleaved bool)
	add(dst, x []float32)
	scale(x []float32, factor float32)
	softcap(x []float32, limit float32)
	halves(dst []uint16, x []float32)
	softmax(scores []float32, lo, hi int, scale, limit float32) (top, sum float32)
	greatest(x []float32) float32
	weights(dst, x []float32, w Weighing) float32
	mergeSums(a, b, top, sum, partTop, partSum []float32)
	mix(dst, x []float32, a, b float32)
	divide(dst, x []float32, divisor float32)
}

// generic is plain Go.
type generic struct{}

func (generic) gemmBlocks(dst []float32, stride int, p panels, x tiles, cols int) {
	gemmBlocks(dst, stride, p, x, cols)
}

func (generic) gemmFloats(dst []float32, stride int, w floatPanels, x floatRows) {
	gemmFloats(dst, stride, w, x)
}

func (generic) unpack(dst []byte, l layout, numbers []byte, cols int) {
	unpackNumbers(dst, l, numbers, cols)
}

func (generic) mergeSums(a, b, top, sum, partTop, partSum []float32) {
	mergeSumsRow(a, b, top, sum, partTop, partSum)
}

func (generic) unpacks(kind, int) bool { return false }

func (generic) softmax(scores []float32, lo, hi int, scale, limit float32) (top, sum float32) {
	return softmaxRow(scores, lo, hi, scale, limit)
}

func (generic) rotate(head, cos, sin []float32, interleaved bool) {
	rotateHead(head, cos, sin, interleaved)
}

func (generic) weights(dst, x []float32, w Weighing) float32 { return weights(dst, x, w) }

func (generic) quantize(a *Acts, r, first, end int)        { quantizeRow(a, r, first, end) }
func (generic) norm(dst, x, weight []float32, eps float32) { normRow(dst, x, weight, eps) }
func (generic) silu(dst, gate, up []float32)               { siluRow(dst, gate, up) }
func (generic) gelu(dst, gate, up []float32)               { geluRow(dst, gate, up) }
func (generic) add(dst, x []float32)                       { addRow(dst, x) }
func (generic) scale(x []float32, factor float32)          { scaleRow(x, factor) }
func (generic) softcap(x []float32, limit float32)         { softcapRow(x, limit) }
func (generic) halves(dst []uint16, x []float32)           { halvesRow(dst, x) }
func (generic) mix(dst, x []float32, a, b float32)         { mixRow(dst, x, a, b) }
func (generic) divide(dst, x []float32, divisor float32)   { divideRow(dst, x, divisor) }
func (generic) greatest(x []float32) float32               { return greatest(x) }
