package tensor

import "fmt"

// DType is the number format of a tensor, numbered as ggml_type is (ggml.h) and as GGUF files store it. Any uint32 is
// a valid value: a number that is not in the table has a name that says so, and is not Known.
type DType uint32

// The formats of ggml_type. Numbers 4, 5, 31–33 and 36–38 belonged to formats that ggml has removed.
const (
	F32     DType = 0
	F16     DType = 1
	Q4_0    DType = 2
	Q4_1    DType = 3
	Q5_0    DType = 6
	Q5_1    DType = 7
	Q8_0    DType = 8
	Q8_1    DType = 9
	Q2_K    DType = 10
	Q3_K    DType = 11
	Q4_K    DType = 12
	Q5_K    DType = 13
	Q6_K    DType = 14
	Q8_K    DType = 15
	IQ2_XXS DType = 16
	IQ2_XS  DType = 17
	IQ3_XXS DType = 18
	IQ1_S   DType = 19
	IQ4_NL  DType = 20
	IQ3_S   DType = 21
	IQ2_S   DType = 22
	IQ4_XS  DType = 23
	I8      DType = 24
	I16     DType = 25
	I32     DType = 26
	I64     DType = 27
	F64     DType = 28
	IQ1_M   DType = 29
	BF16    DType = 30
	TQ1_0   DType = 34
	TQ2_0   DType = 35
	MXFP4   DType = 39
)

// format is what the table holds about a DType.
type format struct {
	name     string
	elements int // numbers in a block
	bytes    int // bytes of a block

	// dequantize turns whole blocks into numbers: len(dst) = n·elements, len(src) = n·bytes. It is nil for a format
	// whose size is known but whose values Quire cannot read.
	dequantize func(dst []float32, src []byte)
}

// formats is indexed by DType; an entry without a name is unused. It never changes.
var formats = [...]format{
	F32:     {"F32", 1, 4, dequantizeF32},
	F16:     {"F16", 1, 2, dequantizeF16},
	Q4_0:    {"Q4_0", 32, 18, dequantizeQ4_0},
	Q4_1:    {"Q4_1", 32, 20, dequantizeQ4_1},
	Q5_0:    {"Q5_0", 32, 22, dequantizeQ5_0},
	Q5_1:    {"Q5_1", 32, 24, dequantizeQ5_1},
	Q8_0:    {"Q8_0", 32, 34, dequantizeQ8_0},
	Q8_1:    {"Q8_1", 32, 36, nil},
	Q2_K:    {"Q2_K", 256, 84, nil},
	Q3_K:    {"Q3_K", 256, 110, nil},
	Q4_K:    {"Q4_K", 256, 144, dequantizeQ4_K},
	Q5_K:    {"Q5_K", 256, 176, dequantizeQ5_K},
	Q6_K:    {"Q6_K", 256, 210, dequantizeQ6_K},
	Q8_K:    {"Q8_K", 256, 292, nil},
	IQ2_XXS: {"IQ2_XXS", 256, 66, nil},
	IQ2_XS:  {"IQ2_XS", 256, 74, nil},
	IQ3_XXS: {"IQ3_XXS", 256, 98, nil},
	IQ1_S:   {"IQ1_S", 256, 50, nil},
	IQ4_NL:  {"IQ4_NL", 32, 18, dequantizeIQ4_NL},
	IQ3_S:   {"IQ3_S", 256, 110, nil},
	IQ2_S:   {"IQ2_S", 256, 82, nil},
	IQ4_XS:  {"IQ4_XS", 256, 136, nil},
	I8:      {"I8", 1, 1, nil},
	I16:     {"I16", 1, 2, nil},
	I32:     {"I32", 1, 4, nil},
	I64:     {"I64", 1, 8, nil},
	F64:     {"F64", 1, 8, nil},
	IQ1_M:   {"IQ1_M", 256, 56, nil},
	BF16:    {"BF16", 1, 2, dequantizeBF16},
	TQ1_0:   {"TQ1_0", 256, 54, nil},
	TQ2_0:   {"TQ2_0", 256, 66, nil},
	MXFP4:   {"MXFP4", 32, 17, dequantizeMXFP4},
}

// format returns the table's entry; the zero format for a number that is not in the table.
func (t DType) format() format {
	if uint64(t) < uint64(len(formats)) {
		return formats[t]
	}
	return format{}
}

// String returns ggml's name of the format, such as "Q4_K", or "type 99" for a number that has none.
func (t DType) String() string {
	if name := t.format().name; name != "" {
		return name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Known tells whether the format's block size is known, so that a tensor of it has a size.
func (t DType) Known() bool { return t.format().name != "" }

// CanDequantize tells whether Dequantize reads this format.
func (t DType) CanDequantize() bool { return t.format().dequantize != nil }

// BlockElements is the number of values in one block, 0 for a format that is not Known.
func (t DType) BlockElements() int { return t.format().elements }

// BlockBytes is the size of one block in bytes, 0 for a format that is not Known.
func (t DType) BlockBytes() int { return t.format().bytes }

// RowBytes returns the size in bytes of a row of cols values. It refuses a format that is not Known, a negative
// count, a row that is not whole blocks, and a size that does not fit an int.
func RowBytes(t DType, cols int) (int, error) {
	f := t.format()
	if f.name == "" {
		return 0, fmt.Errorf("row of %d values: unknown tensor %v", cols, t)
	}
	if cols < 0 || cols%f.elements != 0 {
		return 0, fmt.Errorf("row of %d values is not whole %v blocks of %d", cols, t, f.elements)
	}
	blocks := cols / f.elements
	if size := blocks * f.bytes; size/f.bytes == blocks {
		return size, nil
	}
	return 0, fmt.Errorf("row of %d values: size of %v blocks overflows", cols, t)
}

// Dequantize turns src, whole blocks of format t, into float32 values. dst must have exactly as many elements as src
// stands for.
func Dequantize(t DType, dst []float32, src []byte) error {
	f := t.format()
	if f.dequantize == nil {
		return fmt.Errorf("dequantize: tensors of %v are not supported", t)
	}
	want, err := RowBytes(t, len(dst))
	if err != nil {
		return fmt.Errorf("dequantize: %w", err)
	}
	if len(src) != want {
		return fmt.Errorf("dequantize: %d values of %v take %d bytes, got %d", len(dst), t, want, len(src))
	}
	f.dequantize(dst, src)
	return nil
}
