package cpu

// sparse is plain Go with assembly for products only, and of blocks for some kinds only.
type sparse struct {
	generic
	products *assembly
}

func (s sparse) gemmBlocks(dst []float32, stride int, p panels, x tiles, cols int) {
	if s.products.blocks[p.layout.kind] == nil {
		gemmBlocks(dst, stride, p, x, cols)
		return
	}
	s.products.gemmBlocks(dst, stride, p, x, cols)
}

func (s sparse) gemmFloats(dst []float32, stride int, w floatPanels, x floatRows) {
	s.products.gemmFloats(dst, stride, w, x)
}

// assembly returns the device's assembly, or nil for plain Go.
func (d *Device) assembly() *assembly {
	switch k := d.kernels.(type) {
	case *assembly:
		return k
	case sparse:
		return k.products
	}
	return nil
}
