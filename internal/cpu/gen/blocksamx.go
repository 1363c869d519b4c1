package main

import "fmt"

// Products of block formats with AMX tiles. A panel's block, 8 groups of [16 rows][4 columns] bytes, is a tile of 8 rows
// of 64 bytes as it lies in memory, and a block of activations, up to 16 rows of 32 bytes, is another. One TDPBSUD of
// the two (signed activations, unsigned weights) makes the 16 × 16 integers for which the kernel of blocks512.go needs
// 128 VPDPBUSD. What follows is the same arithmetic in the same order for each row, so results are the same bits.
//
// # From integer to float
//
// While tile instructions are in flight, the multiplications, multiply-adds and conversions of zmm registers run on one
// port instead of two; additions keep both. So the conversion is two additions. |dot| ≤ 255·127·32 < 2²², therefore
// 0x4b400000 + dot are the bits of the float 1.5·2²³ + dot, and subtracting 1.5·2²³ + offset from that is exact, offset
// being what unsigned weights have too much (128·Σq and the like; for a block and row a constant, below 2²³ - 2²² with
// the 1.5·2²³ it is added to, hence a float too). The removal of the offset costs nothing then but the making of the 16
// constants, one vector operation a block.
//
// # What bounds it
//
// A block of 16 rows needs, in operations on ports 0 and 5: 16 · (VPADDD, VADDPS, VMULPS, VFMADD) and one for the
// constants, of which 32 are for port 0 alone, and TILESTORED 16 slots of port 5: 81, or 41 cycles. TDPBSUD takes 16 of
// its own. At 2.6 GHz that is 16 ns for 16·16·32 multiplications and additions, 1040 Gop/s or 24 % of what TDPBSUD alone
// could do; the kernel of blocks512.go needs 94 cycles. A prototype with signed weights, which needs 38 cycles by this
// count, took 17.2 to 18.7 ns (45 to 49 cycles). This kernel has been run on an emulator only, not timed.
//
// # Pipeline
//
// Integers pass through memory (TILESTORED), one block ahead of the additions, tile work is further ahead: three blocks,
// or two where a block has two tiles. It walks on into the panel's product with the next 16 rows, and into the next
// panel. So tile registers rotate, and the loop is unrolled by four.
//
// Numbers of fewer than 8 bits are unpacked into a ring in memory, two blocks ahead of the tile work: 12 to 27 operations a
// block more. Where many tiles of activations use a panel, it is unpacked beforehand as a whole instead (Device.MatMul).
const (
	tileA   = 4 // T4 and T5: activations, of one block and the next; Q6_K: of both halves of a block
	tileB   = 6 // T6 and T7: weights, the same
	tileSum = 0 // T0–T3: integer products

	zMagic   = 12 // 1.5·2²³ as float, whose bits are 0x4b400000
	zRestore = 13 // -1.5·2²³

	magicBits   = 0x4b400000
	restoreBits = 0xcb400000
)

// Memory of an AMX kernel, from R14, which is aligned to 64 bytes.
const (
	workSpill   = 0    // [2 blocks][tile][16 rows][16]int32
	workRing    = 4096 // [ring blocks][8 groups][16 rows][4]uint8
	workRestore = 6144 // [tile and row]float32
	workConfig  = 6272 // the tiles' configuration
	workBytes   = 6464

	// Of the walk through the weights: blocks to unpack of all products of panels and tiles of activations, blocks left of
	// this product, products left of this panel, and until no more is fetched ahead.
	workUnpacks      = 6336
	workWeightsLeft  = 6344
	workWeightsTiles = 6352
	workFetch        = 6360
	// Of the tile work, the same.
	workFeeds     = 6368
	workFeedLeft  = 6376
	workFeedTiles = 6384
	// Of the additions: products left of this panel, panels left, and where the panel's results go.
	workTiles  = 6392
	workPanels = 6400
	workDst    = 6408
)

// ring is how many blocks of unpacked weights are kept, and by how many steps the loop is unrolled.
const ring = 4

// blocksAMX writes one function for each kind of weights.
func blocksAMX() []byte {
	f := newFile("Products of packed weights in block formats with quantised activations, with AMX.")
	for _, k := range blockKinds {
		tileKernel{f, k}.emit()
	}
	return f.finish()
}

// tileKernel emits the kernel of a kind. Registers beside those of blocks512.go: R14 its memory, R15 32, the size of an
// activation's block. SI and AX belong to the walk through the weights, R8 to the tile work, which are ahead of the others.
type tileKernel struct {
	*file
	kind blockKind
}

// tiles is how many products a block has: two where halves of a block have scales of their own.
func (t tileKernel) tiles() int {
	if t.kind.halves {
		return 2
	}
	return 1
}

// packed tells whether the weights must be unpacked.
func (t tileKernel) packed() bool { return t.kind.bits < 8 }

// rotation is how many blocks are in flight.
func (t tileKernel) rotation() int { return 4 / t.tiles() }

// unpackLead is how many blocks unpacking is ahead of the tile work.
const unpackLead = 2

// lead is how many blocks the tile work is ahead.
func (t tileKernel) lead() int {
	if t.kind.halves {
		return 2
	}
	return 3
}

func (t tileKernel) emit() {
	t.frame("blocks"+t.kind.name+"AMX", workBytes+64, 8, fmt.Sprintf(`
blocks%sAMX multiplies c.rows rows of each of c.tiles tiles with c.panels panels (docs/arithmetic.md §5).
func blocks%sAMX(c *blockCall)`, t.kind.name, t.kind.name))
	t.begin()
	t.configure()
	t.weightsPanel()
	t.unpack(0)
	t.unpack(1)
	for n := range t.lead() {
		t.feed(n)
		t.unpack(n + unpackLead)
	}
	t.spill(0)
	steps := make([]step, ring)
	for i := range steps {
		steps[i] = step{t, i, t.label("step"), t.label("end")}
	}
	done := t.label("done")
	for _, s := range steps {
		s.emit()
	}
	t.op("JMP", steps[0].label)
	for i, s := range steps {
		s.endTile(steps[(i+1)%len(steps)].label, done)
	}
	t.place(done)
	t.tileRelease()
	t.ret()
}

// begin emits the loading of registers.
func (t tileKernel) begin() {
	t.op("MOVQ", "c+0(FP)", "BX")
	t.op("LEAQ", "63(SP)", "R14")
	t.op("ANDQ", "$-64", "R14")
	t.op("MOVQ", "blockCall_blocks(BX)", "CX")
	t.op("MOVQ", "CX", mem(workFeedLeft, "R14"))
	t.op("MOVQ", "CX", mem(workWeightsLeft, "R14"))
	t.op("MOVQ", "blockCall_panels(BX)", "AX")
	t.op("MOVQ", "AX", mem(workPanels, "R14"))
	t.op("IMULQ", "blockCall_tiles(BX)", "AX")
	t.op("IMULQ", "CX", "AX")
	t.op("MOVQ", "AX", mem(workFeeds, "R14"))
	t.op("MOVQ", "AX", mem(workUnpacks, "R14"))
	t.move("blockCall_tiles(BX)", mem(workFeedTiles, "R14"))
	t.op("MOVL", imm(magicBits), "AX")
	t.op("VPBROADCASTD", "AX", z(zMagic))
	t.op("MOVL", imm(restoreBits), "AX")
	t.op("VPBROADCASTD", "AX", z(zRestore))
	t.op("MOVQ", "blockCall_dst(BX)", "DI")
	t.op("MOVQ", "DI", mem(workDst, "R14"))
	t.op("MOVQ", "blockCall_numbers(BX)", "SI")
	t.op("MOVQ", "blockCall_scales(BX)", "DX")
	t.op("MOVQ", "blockCall_height(BX)", "R13")
	t.op("SHLQ", "$2", "R13") // bytes of a plane of numbers per block
	t.op("MOVQ", "R13", "R12")
	t.op("SHLQ", "$3", "R12") // bytes of q per block
	t.op("MOVQ", "$32", "R15")
	t.op("MOVQ", "blockCall_q(BX)", "R8")
	t.kind.codes.load512(t.file)
	t.clear()
	t.beginPanel()
}

// clear emits the clearing of the accumulators.
func (t tileKernel) clear() {
	for r := range tileRows {
		t.op("VPXORD", z(zAcc+r), z(zAcc+r), z(zAcc+r))
	}
}

// move emits the copying of a number in memory, by X0.
func (t tileKernel) move(from, to string) {
	t.op("VMOVQ", from, "X0")
	t.op("VMOVQ", "X0", to)
}

// beginPanel emits what the additions need at the beginning of a panel.
func (t tileKernel) beginPanel() {
	t.op("MOVQ", "blockCall_scale(BX)", "R9")
	t.op("MOVQ", "blockCall_offset(BX)", "R10")
	t.op("MOVQ", "blockCall_sum(BX)", "R11")
	t.move("blockCall_tiles(BX)", mem(workTiles, "R14"))
}

// configure emits the configuration: sums and activations have as many rows as are asked for.
func (t tileKernel) configure() {
	depth := 32 / t.tiles() // columns of a product
	t.op("VPXORD", z(0), z(0), z(0))
	t.op("VMOVDQU64", z(0), mem(workConfig, "R14"))
	t.op("MOVB", "$1", mem(workConfig, "R14"))
	t.op("MOVQ", "$0x0040004000400040", "AX") // bytes of a row: T0–T3
	t.op("MOVQ", "AX", mem(workConfig+16, "R14"))
	t.op("MOVQ", fmt.Sprintf("$0x00400040%04x%04x", depth, depth), "AX") // T4–T7
	t.op("MOVQ", "AX", mem(workConfig+24, "R14"))
	t.op("MOVQ", "$0x0000010101010101", "AX") // rows of T0–T5
	t.op("IMULQ", "blockCall_rows(BX)", "AX")
	t.op("MOVQ", "AX", mem(workConfig+48, "R14"))
	t.op("MOVW", fmt.Sprintf("$0x%02x%02x", depth/4, depth/4), mem(workConfig+54, "R14"))
	t.tileConfig("R14", workConfig)
}

// feed emits the tile work of block n, counted by the rotation, if there is one.
func (t tileKernel) feed(n int) {
	idle := t.label("fed")
	t.op("DECQ", mem(workFeeds, "R14"))
	t.op("JLT", idle)
	weights := rowsAt{"SI", 0, "R15", 2}
	if t.packed() {
		weights = rowsAt{"R14", t.ringAt(n), "R15", 2}
	}
	for i := range t.tiles() {
		source := n % 2
		if t.kind.halves {
			source = i
		}
		t.tileLoad(weights, tileB+source)
		t.tileLoad(rowsAt{"R8", 16 * i, "R15", 1}, tileA+source)
		t.tileZero(t.sum(n, i))
		t.tileDot(tileA+source, tileB+source, t.sum(n, i))
		weights.offset += 256
	}
	t.op("ADDQ", "R12", "R8")
	if !t.packed() {
		t.walkWeights()
	}
	t.op("DECQ", mem(workFeedLeft, "R14"))
	t.op("JNZ", idle)
	t.move("blockCall_blocks(BX)", mem(workFeedLeft, "R14"))
	t.op("DECQ", mem(workFeedTiles, "R14"))
	t.op("JNZ", idle)
	t.move("blockCall_tiles(BX)", mem(workFeedTiles, "R14"))
	t.op("MOVQ", "blockCall_q(BX)", "R8")
	t.place(idle)
}

// ringAt is where the unpacked weights of block n are.
func (t tileKernel) ringAt(n int) int { return workRing + n%ring*512 }

// unpack emits the unpacking of block n, counted by the rotation, if there is one and it is packed.
func (t tileKernel) unpack(n int) {
	if !t.packed() {
		return
	}
	idle := t.label("unpacked")
	t.op("DECQ", mem(workUnpacks, "R14"))
	t.op("JLT", idle)
	numbers512(t.file, t.kind.bits, t.nibbleMask())
	t.kind.codes.lookup512(t.file)
	for g := range 8 {
		t.op("VMOVDQU64", z(g), mem(t.ringAt(n)+64*g, "R14"))
	}
	t.walkWeights()
	t.place(idle)
}

// nibbleMask is the operand of 0x0f bytes, in memory, since registers are scarce.
func (t tileKernel) nibbleMask() string {
	c := constants{t.file, t.constants}
	return c.float("lowNibbles", 0x0f0f0f0f)
}

// walkWeights emits the way to the weights of the next block: of the same panel, of its beginning for the next tile of
// activations, or of the next panel.
func (t tileKernel) walkWeights() {
	near, panel, end := t.label("near"), t.label("weightsPanel"), t.label("weights")
	t.op("TESTQ", "AX", "AX")
	t.op("JZ", near)
	t.kind.fetch(t.file, near)
	t.place(near)
	t.op("ADDQ", imm(t.kind.blockBytes()), "SI")
	t.op("DECQ", mem(workWeightsLeft, "R14"))
	t.op("JNZ", end)
	t.move("blockCall_blocks(BX)", mem(workWeightsLeft, "R14"))
	t.op("DECQ", mem(workWeightsTiles, "R14"))
	t.op("JZ", panel)
	t.op("SUBQ", "blockCall_numbersBack(BX)", "SI")
	t.op("DECQ", mem(workFetch, "R14"))
	t.op("JNZ", end)
	t.op("XORL", "AX", "AX")
	t.op("JMP", end)
	t.place(panel)
	t.op("ADDQ", "blockCall_numbersGap(BX)", "SI")
	t.weightsPanel()
	t.place(end)
}

// weightsPanel emits what the walk through the weights needs at the beginning of a panel.
func (t tileKernel) weightsPanel() {
	near := t.label("near")
	t.move("blockCall_tiles(BX)", mem(workWeightsTiles, "R14"))
	t.op("MOVQ", "$2", mem(workFetch, "R14"))
	t.op("MOVQ", "blockCall_ahead(BX)", "AX") // weights to prefetch, or 0
	t.op("TESTQ", "AX", "AX")
	t.op("JZ", near)
	t.op("ADDQ", "SI", "AX")
	t.place(near)
}

// sum is the tile of a product of block n.
func (t tileKernel) sum(n, product int) int {
	return tileSum + n%t.rotation()*t.tiles() + product
}

// spillAt is where row r of a product of block n passes through memory.
func (t tileKernel) spillAt(n, product, r int) int {
	return workSpill + (n%2*t.tiles()+product)*1024 + 64*r
}

// spill emits the storing of block n's products.
func (t tileKernel) spill(n int) {
	for i := range t.tiles() {
		t.tileStore(t.sum(n, i), rowsAt{"R14", t.spillAt(n, i, 0), "R15", 2})
	}
}

// step is the work on a block, at a place of the rotation.
type step struct {
	tileKernel
	n        int
	label    string
	endLabel string // of the code at the end of a product
}

func (s step) emit() {
	const group = 4 // rows
	s.place(s.label)
	s.spill(s.n + 1)
	s.record()
	s.kind.scales(s.file)
	s.restore()
	s.rows(0, group)
	s.feed(s.n + s.lead())
	s.unpack(s.n + s.lead() + unpackLead)
	for r := group; r < tileRows; r += group {
		s.op("CMPQ", "blockCall_rows(BX)", imm(r))
		s.op("JLE", s.label+"_rows")
		s.rows(r, group)
	}
	s.place(s.label + "_rows")
	s.op("ADDQ", "R13", "R9")
	switch {
	case s.kind.halves:
		s.op("LEAQ", "(R10)(R13*2)", "R10")
	case s.kind.min:
		s.op("ADDQ", "R13", "R11")
	default:
		s.op("ADDQ", "R13", "R10")
	}
	s.op("DECQ", "CX")
	s.op("JZ", s.endLabel)
}

// record emits the beginning of a record of eight blocks, which can only be at the first step: panels have a multiple
// of eight blocks then.
func (s step) record() {
	if !s.kind.k || s.n != 0 {
		return
	}
	inside := s.label + "_record"
	s.op("TESTQ", "$7", "CX")
	s.op("JNZ", inside)
	s.kind.recordScales(s.file)
	s.place(inside)
}

// restore emits the constants that make of a float's bits the product.
func (s step) restore() {
	if s.kind.min {
		return
	}
	for i := range s.tiles() {
		s.op("VPSUBD", mem(64*i, "R10"), z(zRestore), z(0))
		s.op("VMOVDQU64", z(0), mem(workRestore+64*i, "R14"))
	}
}

// float emits a product of row r as float in register to.
func (s step) float(product, r, to int) {
	s.op("VPADDD", mem(s.spillAt(s.n, product, r), "R14"), z(zMagic), z(to))
	if s.kind.min {
		s.op("VADDPS", z(zRestore), z(to), z(to))
		return
	}
	s.op("VADDPS.BCST", mem(workRestore+4*(s.tiles()*r+product), "R14"), z(to), z(to))
}

// rows emits the additions of n rows to their accumulators, Z0–Z7 being used beside.
func (s step) rows(first, n int) {
	for i := range n {
		r, dot, other, acc := first+i, i, 4+i, z(zAcc+first+i)
		s.float(0, r, dot)
		if s.kind.halves {
			s.float(1, r, other)
			s.op("VMULPS", z(zScale), z(dot), z(dot))
			s.op("VFMADD231PS", z(zMin), z(other), z(dot))
			s.op("VMULPS.BCST", mem(4*r, "R9"), z(zD), z(other))
		} else {
			s.op("VMULPS.BCST", mem(4*r, "R9"), z(zScale), z(other))
		}
		s.op("VFMADD231PS", z(other), z(dot), acc)
		switch {
		case s.kind.min && s.kind.k: // the minimum is subtracted
			s.op("VFNMADD231PS.BCST", mem(4*r, "R11"), z(zMin), acc)
		case s.kind.min:
			s.op("VFMADD231PS.BCST", mem(4*r, "R11"), z(zMin), acc)
		}
	}
}

// endTile emits the writing of a panel's product with a tile of activations, and the way to the next.
func (s step) endTile(next, done string) {
	written, panel := s.endLabel+"_written", s.endLabel+"_panel"
	s.place(s.endLabel)
	s.op("MOVQ", "DI", "CX")
	s.op("VMOVUPS", z(zAcc), "(CX)")
	for r := 1; r < tileRows; r++ {
		s.op("CMPQ", "blockCall_rows(BX)", imm(r))
		s.op("JLE", written)
		s.op("ADDQ", "blockCall_stride(BX)", "CX")
		s.op("VMOVUPS", z(zAcc+r), "(CX)")
	}
	s.place(written)
	s.clear()
	s.op("MOVQ", "blockCall_blocks(BX)", "CX")
	s.op("DECQ", mem(workTiles, "R14"))
	s.op("JZ", panel)
	s.op("ADDQ", "blockCall_dstTile(BX)", "DI")
	s.op("SUBQ", "blockCall_scalesBack(BX)", "DX")
	s.op("JMP", next)
	s.place(panel)
	s.op("DECQ", mem(workPanels, "R14"))
	s.op("JZ", done)
	s.op("ADDQ", "$64", mem(workDst, "R14"))
	s.op("MOVQ", mem(workDst, "R14"), "DI")
	s.op("ADDQ", "blockCall_scalesGap(BX)", "DX")
	s.beginPanel()
	s.op("JMP", next)
}
