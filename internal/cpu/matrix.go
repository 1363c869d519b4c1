package cpu

import (
	"fmt"

	"github.com/quire-ai/quire/internal/tensor"
)

// Matrix is a weight matrix packed for MatMul: Rows outputs of Cols inputs. It is one part or several stacked, each
// with its own number format, so that q, k and v, or gate and up, are one product. Read-only; its memory belongs to the
// Device that packed it.
type Matrix struct {
	Rows, Cols int
	Bias       []float32 // added to each output after the product, or nil; Rows long. Set it before the first use.

	parts  []part
	panels int // of all parts
}

// Part is a tensor to pack: rows of cols values in one of GGUF's formats.
type Part struct {
	Type tensor.DType
	Rows int
	Data []byte
}

// part is a stack of panels in one format. A panel is 16 rows of weights, interleaved so that a vector lane is a row;
// rows missing in the last one are zero. The layout of a panel is described at layout.
type part struct {
	layout     layout
	rows       int
	firstRow   int // in the matrix
	firstPanel int // in the matrix
	data       []byte
	panelBytes int
}

// kind names the inner loop that a panel's layout wants.
type kind uint8

const (
	kindQ8    kind = iota // bytes, weight = scale·(byte - 128); also unpacked Q4 and Q5
	kindQ4                // nibbles, weight = scale·(nibble - 8)
	kindQ5                // 5 bits, weight = scale·(number - 16)
	kindN4                // nibbles that stand for the codes of IQ4_NL, weight = scale·(code - 128); unpacked it is Q8
	kindM4                // nibbles that stand for the codes of MXFP4, weight = scale·(code - 16), bfloat16 scales
	kindQ8Min             // bytes, weight = scale·byte + min: unpacked Q4Min and Q5Min
	kindQ4Min             // nibbles, weight = scale·nibble + min
	kindQ5Min             // 5 bits, the same
	kindQ8K               // bytes, weight = d·scale·byte - dmin·min: unpacked Q4K and Q5K
	kindQ4K               // nibbles, the same
	kindQ5K               // 5 bits, the same
	kindB6K               // bytes, weight = d·scale·(byte - 32), scales of 16 columns: unpacked Q6K
	kindQ6K               // 6 bits, the same
	kindF32               // float32
	kindF16
	kindBF16
	kindCount
)

// layout says how a panel is laid out: a plane of numbers, then a plane of scales.
//
// Numbers, of a block of 32 columns, as 8 groups of 4 columns: a group of bytes is [16 rows][4 columns]. Numbers of 4
// to 6 bits have their low four in 4 such groups, group g in the low halves of the bytes and group g+4 in the high
// ones. The fifth bits follow in one group, bit g of a byte belonging to group g; the fifth and sixth bits in two
// groups, bits 2g and 2g+1 of a byte of the first belonging to group g, of the second to group g+4. Float formats have
// [column][16 rows].
//
// Scales: [block]{scale [16]f16}, in MXFP4 bf16 for their range, with a minimum [block]{scale [16]f16, min [16]f16};
// the k-quants, whose blocks come in eights, have
// [8 blocks]{d [16]f16, dmin [16]f16, [block]{scale [16]uint8, min [16]uint8}}, and Q6_K has
// [8 blocks]{d [16]f16, [half block][16]int8}.
type layout struct {
	kind        kind
	bits        int // of a number
	offset      int // of the unsigned numbers
	blockBytes  int // of the numbers of 32 columns (of one column in float formats)
	scaleBlocks int // blocks that share a record of scales; 0 in float formats
	scaleBytes  int // of that record

	codes *[16]uint8 // what the numbers stand for, or nil if for themselves
}

// layouts is indexed by kind. It never changes.
var layouts = [kindCount]layout{
	kindQ8:    {kindQ8, 8, 128, 512, 1, 32, nil},
	kindQ4:    {kindQ4, 4, 8, 256, 1, 32, nil},
	kindQ5:    {kindQ5, 5, 16, 320, 1, 32, nil},
	kindN4:    {kindN4, 4, 128, 256, 1, 32, codesOf(tensor.IQ4_NL, 128)},
	kindM4:    {kindM4, 4, 16, 256, 1, 32, codesOf(tensor.MXFP4, 16)},
	kindQ4Min: {kindQ4Min, 4, 0, 256, 1, 64, nil},
	kindQ5Min: {kindQ5Min, 5, 0, 320, 1, 64, nil},
	kindQ4K:   {kindQ4K, 4, 0, 256, 8, 64 + 8*32, nil},
	kindQ5K:   {kindQ5K, 5, 0, 320, 8, 64 + 8*32, nil},
	kindQ6K:   {kindQ6K, 6, 32, 384, 8, 32 + 16*16, nil},
	kindF32:   {kindF32, 32, 0, 64, 0, 0, nil},
	kindF16:   {kindF16, 16, 0, 32, 0, 0, nil},
	kindBF16:  {kindBF16, 16, 0, 32, 0, 0, nil},
}

// codesOf returns a format's codebook as unsigned numbers.
func codesOf(t tensor.DType, offset int) *[16]uint8 {
	var codes [16]uint8
	book, _ := tensor.Codebook(t)
	for i, v := range book {
		codes[i] = uint8(int(v) + offset)
	}
	return &codes
}

func (k kind) isFloat() bool { return k >= kindF32 }

func (k kind) hasMin() bool { return k >= kindQ8Min && k <= kindQ5K }

func (k kind) hasHalves() bool { return k == kindQ6K || k == kindB6K }

// unpacked is the layout with a byte for each number.
func (l layout) unpacked() layout {
	switch l.kind {
	case kindQ4, kindQ5, kindN4:
		l.kind = kindQ8
	case kindQ4Min, kindQ5Min:
		l.kind = kindQ8Min
	case kindQ4K, kindQ5K:
		l.kind = kindQ8K
	case kindQ6K:
		l.kind = kindB6K
	}
	l.bits, l.blockBytes, l.codes = 8, 512, nil
	return l
}

// numbersBytes is the size of a panel's plane of numbers.
func (l layout) numbersBytes(cols int) int {
	if l.kind.isFloat() {
		return l.blockBytes * cols
	}
	return l.blockBytes * (cols / blockCols)
}

// scalesBytes is the size of a panel's plane of scales.
func (l layout) scalesBytes(cols int) int {
	if l.scaleBlocks == 0 {
		return 0
	}
	return cols / blockCols / l.scaleBlocks * l.scaleBytes
}

// panelBytes is the size of a panel.
func (l layout) panelBytes(cols int) int {
	return roundUp(l.numbersBytes(cols)+l.scalesBytes(cols), alignment)
}

// kindOf returns the kind of panel a tensor is packed into.
func kindOf(t tensor.DType) (kind, error) {
	switch t {
	case tensor.F32:
		return kindF32, nil
	case tensor.F16:
		return kindF16, nil
	case tensor.BF16:
		return kindBF16, nil
	case tensor.Q8_0:
		return kindQ8, nil
	case tensor.Q4_0:
		return kindQ4, nil
	case tensor.Q4_1:
		return kindQ4Min, nil
	case tensor.Q5_0:
		return kindQ5, nil
	case tensor.Q5_1:
		return kindQ5Min, nil
	case tensor.Q4_K:
		return kindQ4K, nil
	case tensor.Q5_K:
		return kindQ5K, nil
	case tensor.Q6_K:
		return kindQ6K, nil
	case tensor.IQ4_NL:
		return kindN4, nil
	case tensor.MXFP4:
		return kindM4, nil
	}
	return 0, fmt.Errorf("weights of %v have no kernel", t)
}

// CanPack tells whether Pack takes tensors of type t.
func CanPack(t tensor.DType) bool {
	_, err := kindOf(t)
	return err == nil
}

// Pack packs one tensor of rows × cols.
func (d *Device) Pack(t tensor.DType, rows, cols int, src []byte) (*Matrix, error) {
	return d.PackRows(cols, Part{Type: t, Rows: rows, Data: src})
}

// PackRows packs tensors stacked on one another: the outputs of the matrix are those of the first part, then those
// of the second. The sources may be unmapped afterwards.
func (d *Device) PackRows(cols int, parts ...Part) (*Matrix, error) {
	m := &Matrix{Cols: cols}
	for _, src := range parts {
		k, err := kindOf(src.Type)
		if err != nil {
			return nil, fmt.Errorf("pack: %w", err)
		}
		rowBytes, err := tensor.RowBytes(src.Type, cols)
		if err != nil {
			return nil, fmt.Errorf("pack: %w", err)
		}
		if src.Rows < 1 || cols < 1 || len(src.Data) != src.Rows*rowBytes {
			return nil, fmt.Errorf("pack: %d × %d values of %v take %d bytes, got %d", src.Rows, cols, src.Type,
				src.Rows*rowBytes, len(src.Data))
		}
		p := part{layout: layouts[k], rows: src.Rows, firstRow: m.Rows, firstPanel: m.panels}
		panels := (src.Rows + lanes - 1) / lanes
		p.panelBytes = p.layout.panelBytes(cols)
		if p.data, err = d.memory.alloc(panels * p.panelBytes); err != nil {
			return nil, fmt.Errorf("pack: %w", err)
		}
		d.Run(panels, func(_, panel int) {
			packPanel(p.data[panel*p.panelBytes:][:p.panelBytes], p.layout, panelSource{
				format: src.Type, cols: cols, rowBytes: rowBytes,
				rows: src.Data[panel*lanes*rowBytes : min((panel+1)*lanes, src.Rows)*rowBytes],
			})
		})
		m.parts = append(m.parts, p)
		m.Rows += src.Rows
		m.panels += panels
	}
	return m, nil
}

// Bytes is the memory the packed weights take.
func (m *Matrix) Bytes() int {
	n := 0
	for _, p := range m.parts {
		n += len(p.data)
	}
	return n
}

// panels is a run of panels of one part, with what a kernel must know of them.
type panels struct {
	layout      layout
	numbers     []byte // from the first panel's
	numbersStep int    // to the next panel's
	scales      []byte
	scalesStep  int
	count       int
	column      int  // of the first output
	rows        int  // outputs of each: 16, but for the last panel of a part, which is a run of its own
	near        bool // they are in the cache
}

// run returns the longest run from panel i to before end.
func (m *Matrix) run(i, end int) panels {
	p := &m.parts[0]
	for j := 1; j < len(m.parts) && i >= m.parts[j].firstPanel; j++ {
		p = &m.parts[j]
	}
	i, end = i-p.firstPanel, end-p.firstPanel
	data := p.data[i*p.panelBytes:]
	r := panels{
		layout:      p.layout,
		numbers:     data,
		numbersStep: p.panelBytes,
		scales:      data[p.layout.numbersBytes(m.Cols):],
		scalesStep:  p.panelBytes,
		count:       min(end, p.rows/lanes) - i,
		column:      p.firstRow + i*lanes,
		rows:        lanes,
	}
	if r.count <= 0 {
		r.count, r.rows = 1, p.rows%lanes
	}
	return r
}

// part returns count panels of the run, from panel i.
func (p panels) part(i, count int) panels {
	p.numbers, p.scales = p.numbers[i*p.numbersStep:], p.scales[i*p.scalesStep:]
	p.column += i * lanes
	p.count = count
	return p
}

// width is the number of outputs of the run.
func (p *panels) width() int { return (p.count-1)*lanes + p.rows }
