package tensor

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// published is one format of testdata/blocks.json: blocks with random contents, and the values they stand for as
// ggml's own code gives them.
type published struct {
	Type     DType  `json:"ggml_type"`
	Elements int    `json:"block_elements"`
	Bytes    int    `json:"block_bytes"`
	Blocks   int    `json:"n_blocks"`
	Raw      []byte `json:"raw_base64"`
	Values   []byte `json:"f32_le_base64"`
}

func readPublished(t *testing.T) map[string]published {
	t.Helper()
	data, err := os.ReadFile("testdata/blocks.json")
	if err != nil {
		t.Fatal(err)
	}
	var formats map[string]published
	if err := json.Unmarshal(data, &formats); err != nil {
		t.Fatal(err)
	}
	return formats
}

func TestDequantizePublishedBlocks(t *testing.T) {
	for name, p := range readPublished(t) {
		t.Run(name, func(t *testing.T) {
			if p.Type.String() != name || p.Type.BlockElements() != p.Elements || p.Type.BlockBytes() != p.Bytes {
				t.Fatalf("format %d is %v with blocks of %d in %d bytes, want %s, %d, %d", p.Type, p.Type,
					p.Type.BlockElements(), p.Type.BlockBytes(), name, p.Elements, p.Bytes)
			}
			got := make([]float32, p.Elements*p.Blocks)
			if err := Dequantize(p.Type, got, p.Raw); err != nil {
				t.Fatal(err)
			}
			for i, g := range got {
				want := math.Float32frombits(binary.LittleEndian.Uint32(p.Values[4*i:]))
				if g != want {
					t.Fatalf("value %d = %v, want %v", i, g, want)
				}
			}
		})
	}
}

func TestRowBytes(t *testing.T) {
	for _, c := range []struct {
		t    DType
		cols int
		want int
		err  string
	}{
		{F32, 3, 12, ""},
		{F32, 0, 0, ""},
		{Q4_K, 512, 288, ""},
		{IQ2_XS, 256, 74, ""},
		{Q8_0, 33, 0, "row of 33 values is not whole Q8_0 blocks of 32"},
		{Q8_0, -32, 0, "row of -32 values is not whole Q8_0 blocks of 32"},
		{F64, math.MaxInt / 4, 0, "overflows"},
		{99, 32, 0, "unknown tensor type 99"},
		{4, 32, 0, "unknown tensor type 4"},
		{math.MaxUint32, 32, 0, "unknown tensor type 4294967295"},
	} {
		got, err := RowBytes(c.t, c.cols)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("RowBytes(%v, %d) = %d, %v; want %d, %q", c.t, c.cols, got, err, c.want, c.err)
		}
	}
}

func TestDequantizeRefuses(t *testing.T) {
	for _, c := range []struct {
		t      DType
		values int
		bytes  int
		want   string
	}{
		{IQ2_XS, 256, 74, "dequantize: tensors of IQ2_XS are not supported"},
		{77, 256, 74, "dequantize: tensors of type 77 are not supported"},
		{Q8_0, 32, 33, "dequantize: 32 values of Q8_0 take 34 bytes, got 33"},
		{Q8_0, 31, 34, "dequantize: row of 31 values is not whole Q8_0 blocks of 32"},
	} {
		err := Dequantize(c.t, make([]float32, c.values), make([]byte, c.bytes))
		if err == nil || err.Error() != c.want {
			t.Errorf("Dequantize(%v, %d values, %d bytes) = %v, want %q", c.t, c.values, c.bytes, err, c.want)
		}
	}
}

// BenchmarkDequantize stands for the embedding lookup of one token: a row of 2048.
func BenchmarkDequantize(b *testing.B) {
	for _, t := range []DType{F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K, IQ4_NL, MXFP4} {
		b.Run(t.String(), func(b *testing.B) {
			dst := make([]float32, 2048)
			size, err := RowBytes(t, len(dst))
			if err != nil {
				b.Fatal(err)
			}
			src := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := Dequantize(t, dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
