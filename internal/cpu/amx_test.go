package cpu

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quire-ai/quire/internal/tensor"
)

// needAMX skips a test where there are no tiles. internal/cpu/amxemu runs it on other machines.
func needAMX(t *testing.T) {
	t.Helper()
	if err := AMX.Check(); err != nil {
		t.Skipf("level amx: %v", err)
	}
}

// blockTypes are the types whose products are of integers.
var blockTypes = slices.DeleteFunc(slices.Clone(packTypes), func(t tensor.DType) bool { return t.BlockElements() == 1 })

// extremeWeights returns blocks of the greatest and least numbers there are, with scales of all sizes, some of which are
// no numbers.
func extremeWeights(r *rand.Rand, t tensor.DType, rows, cols int) []byte {
	b := randomWeights(r, t, rows, cols)
	for i := 0; i < len(b); i += t.BlockBytes() {
		block := b[i:][:t.BlockBytes()]
		fill := []byte{0x00, 0x7f, 0x80, 0xff}[r.IntN(4)]
		for j := range block {
			block[j] = fill
			if r.IntN(16) == 0 {
				block[j] = byte(r.Uint32())
			}
		}
		for _, at := range halfAt(t) {
			half := tensor.F32ToF16(float32(r.NormFloat64()))
			if r.IntN(200) == 0 {
				half = uint16(r.Uint32())
			}
			binary.LittleEndian.PutUint16(block[at:], half)
		}
	}
	return b
}

// tileCase is a product of blocks by AMX and by plain Go.
type tileCase struct {
	typ                 tensor.DType
	rows, outputs, cols int
	from                int // the least height of a tile that AMX multiplies
	unpackFrom          int // the number of rows from which panels are unpacked beforehand
}

// check compares the two and returns the number of outputs.
func (c tileCase) check(t *testing.T, tiles, generic *Device) int {
	t.Helper()
	a, ok := tiles.kernels.(*assembly)
	if !ok {
		t.Fatalf("kernels of level %v are %T", tiles.Level(), tiles.kernels)
	}
	for k := range a.amxFrom {
		a.amxFrom[k] = c.from
	}
	a.unpackFrom = c.unpackFrom
	var results [2][]float32
	for i, d := range []*Device{tiles, generic} {
		r := seeded(uint64(c.typ)<<32 + uint64(c.rows)<<16 + uint64(c.cols))
		m, err := d.Pack(c.typ, c.outputs, c.cols, extremeWeights(r, c.typ, c.outputs, c.cols))
		if err != nil {
			t.Fatal(err)
		}
		x, err := d.NewActs(c.rows, c.cols)
		if err != nil {
			t.Fatal(err)
		}
		x.SetRows(c.rows)
		copy(x.F32, extremes(normals(r, c.rows*c.cols), uint64(c.rows)))
		results[i] = make([]float32, c.rows*c.outputs)
		d.MatMul(results[i], m, x)
	}
	if s := differ(results[0], results[1]); s != "" {
		t.Errorf("%+v: %s", c, s)
	}
	return len(results[0])
}

// TestTiles compares all kinds of blocks over heights 1 to 70, all made by AMX but those it would leave to VNNI, and
// over the depths of real models.
func TestTiles(t *testing.T) {
	needAMX(t)
	tiles, generic := newDevice(t, AMX, 1), newDevice(t, Generic, 1)
	outputs := 0
	for _, typ := range blockTypes {
		unit := max(blockCols, typ.BlockElements())
		for rows := 1; rows <= 70; rows++ {
			c := tileCase{typ: typ, rows: rows, outputs: 1 + rows*11%50, cols: unit * (1 + rows%4), from: 1 + rows%2*8, unpackFrom: 1 + rows%3*32}
			outputs += c.check(t, tiles, generic)
		}
		for _, cols := range []int{576, 896, 1536, 4864} {
			if cols%unit == 0 {
				outputs += tileCase{typ: typ, rows: 19, outputs: 40, cols: cols, from: 1, unpackFrom: 50}.check(t, tiles, generic)
			}
		}
	}
	t.Logf("%d outputs are those of plain Go", outputs)
}

// TestPeakTiles runs the loop that measures, which computes nothing.
func TestPeakTiles(t *testing.T) {
	needAMX(t)
	kernelsOf(AMX).(*assembly).peakInts(2)
}

// TestCheckSaysWhy holds that a level that cannot be had is refused with a reason.
func TestCheckSaysWhy(t *testing.T) {
	for _, l := range []Level{Generic, AVX2, AVX512VNNI, AMX, AMX + 1, -1} {
		err := l.Check()
		_, detectErr := Detect(fmt.Sprint(l))
		if (err == nil) != l.Supported() || (err == nil) != (detectErr == nil) {
			t.Errorf("%v: Check says %v, Supported %v, Detect %v", l, err, l.Supported(), detectErr)
		}
		if err != nil && len(err.Error()) < 10 {
			t.Errorf("%v: %q is no reason", l, err)
		}
	}
}
