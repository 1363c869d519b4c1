package gguf

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/tensor"
)

// bytesOf writes a file by hand, so that it can be wrong: strings as GGUF strings, numbers little-endian, raw as it is.
func bytesOf(parts ...any) []byte {
	var out []byte
	for _, p := range parts {
		switch p := p.(type) {
		case raw:
			out = append(out, p...)
		case string:
			out = appendString(out, p)
		default:
			var err error
			if out, err = binary.Append(out, binary.LittleEndian, p); err != nil {
				panic(err)
			}
		}
	}
	return out
}

type raw string

// header begins a file of version 3.
func header(tensors, keys uint64) raw {
	return raw(bytesOf(raw(magic), uint32(3), tensors, keys))
}

var (
	zeros  = raw(make([]byte, 4096)) // room for whatever a file claims next
	f32    = uint32(tensor.F32)
	u32    = uint32(Uint32)
	array  = uint32(Array)
	str    = uint32(String)
	boolen = uint32(Bool)
)

// hostileFile is a file with one fault.
type hostileFile struct {
	name string
	data []byte
	want string // the error after "read m.gguf: "
}

// hostileFiles returns one file for each kind of lie, with the error that tells it.
func hostileFiles() []hostileFile {
	const huge = math.MaxUint64
	return []hostileFile{
		// The header.
		{
			"version 1", bytesOf(raw("GGUF"), uint32(1), zeros),
			"header at byte 0: GGUF version 1 is not supported, versions 2 and 3 are; convert the model again",
		},
		{
			"version 99", bytesOf(raw("GGUF"), uint32(99), zeros),
			"header at byte 0: GGUF version 99 is not supported, versions 2 and 3 are",
		},
		{
			"big-endian", bytesOf(raw("GGUF\x00\x00\x00\x03"), zeros),
			"header at byte 0: big-endian file (GGUF version 3): only little-endian files are supported",
		},
		{
			"tensor count", bytesOf(header(huge, 0), zeros),
			"header at byte 0: 18446744073709551615 tensors, but at most 163 fit in the 4096 bytes left",
		},
		{
			"key count", bytesOf(header(0, huge), zeros),
			"header at byte 0: 18446744073709551615 metadata keys, but at most 292 fit in the 4096 bytes left",
		},
		{
			"key count beyond any model", bytesOf(header(0, maxKeys+1), raw(make([]byte, 2<<20))),
			"header at byte 0: 65537 metadata keys, but at most 65536 fit in the 2097152 bytes left",
		},

		// Keys and values.
		{
			"key length", bytesOf(header(0, 1), uint64(huge), zeros),
			"key 1 of 1 at byte 24: name: string: needs 18446744073709551615 bytes at byte 32, the file ends after 4096: unexpected EOF",
		},
		{
			"key name too long", bytesOf(header(0, 1), strings.Repeat("k", 1<<16), zeros),
			"key 1 of 1 at byte 24: name of 65536 bytes exceeds 65535",
		},
		{"empty key", bytesOf(header(0, 1), "", zeros), "key 1 of 1 at byte 24: name is empty"},
		{"key not UTF-8", bytesOf(header(0, 1), "a\xff", zeros), `key 1 of 1 at byte 24: name "a\xff" is not UTF-8`},
		{"key twice", bytesOf(header(0, 2), "k", u32, uint32(1), "k", zeros), `key "k" at byte 41: key occurs twice`},
		{"unknown kind", bytesOf(header(0, 1), "k", uint32(13), zeros), `key "k" at byte 24: unknown kind of value 13`},
		{
			"string length", bytesOf(header(0, 1), "k", str, uint64(1<<63), zeros),
			`key "k" at byte 24: string: needs 9223372036854775808 bytes at byte 45, the file ends after 4096: unexpected EOF`,
		},
		{"boolean of 2", bytesOf(header(0, 1), "k", boolen, uint8(2), zeros), `key "k" at byte 24: boolean is 2, want 0 or 1`},
		{
			"array length", bytesOf(header(0, 1), "k", array, str, uint64(1<<61), zeros),
			`key "k" at byte 24: array of 2305843009213693952 elements of at least 8 bytes exceeds the 4096 bytes left: unexpected EOF`,
		},
		{"array kind", bytesOf(header(0, 1), "k", array, uint32(77), zeros), `key "k" at byte 24: unknown kind of array elements 77`},
		{
			"array element", bytesOf(header(0, 1), "k", array, str, uint64(2), "ok", uint64(5000), zeros),
			`key "k" at byte 24: element 1: string: needs 5000 bytes at byte 67, the file ends after 4096: unexpected EOF`,
		},
		{
			"deep array", bytesOf(header(0, 1), "k", array, raw(strings.Repeat(string(bytesOf(array, uint64(1))), 300))),
			`key "k" at byte 24: element 0: element 0: element 0: element 0: arrays nested deeper than 4`,
		},

		// Alignment.
		{
			"alignment 0", bytesOf(header(0, 1), KeyAlignment, u32, uint32(0), zeros),
			`key "general.alignment" at byte 24: alignment 0 is not a power of two below 2^31`,
		},
		{
			"alignment 3", bytesOf(header(0, 2), KeyAlignment, u32, uint32(3), "k", u32, zeros),
			`key "general.alignment" at byte 24: alignment 3 is not a power of two below 2^31`,
		},
		{
			"alignment 2^40", bytesOf(header(0, 1), KeyAlignment, uint32(Uint64), uint64(1<<40), zeros),
			`key "general.alignment" at byte 24: alignment 1099511627776 is not a power of two below 2^31`,
		},
		{
			"alignment as text", bytesOf(header(0, 1), KeyAlignment, str, "32", zeros),
			`key "general.alignment" at byte 24: string is not a non-negative integer`,
		},
		{
			"alignment beyond the file", bytesOf(header(1, 1), KeyAlignment, u32, uint32(1<<30), "t", uint32(0), f32, uint64(0), zeros),
			"tensor data at byte 82: tensor data begins at byte 1073741824, the file has 4178",
		},

		// Tensors.
		{
			"tensor twice", bytesOf(header(2, 0), "t", uint32(0), f32, uint64(0), "t", zeros),
			`tensor "t" at byte 49: name occurs twice`,
		},
		{"5 dimensions", bytesOf(header(1, 0), "t", uint32(5), zeros), `tensor "t" at byte 24: 5 dimensions exceed 4`},
		{
			"2^32-1 dimensions", bytesOf(header(1, 0), "t", uint32(math.MaxUint32), zeros),
			`tensor "t" at byte 24: 4294967295 dimensions exceed 4`,
		},
		{
			"dimension 0", bytesOf(header(1, 0), "t", uint32(2), uint64(32), uint64(0), f32, uint64(0), zeros),
			`tensor "t" at byte 24: dimension 1 of [32 0] is 0`,
		},
		{
			"product wraps to 0", bytesOf(header(1, 0), "t", uint32(2), uint64(1<<32), uint64(1<<32), f32, uint64(0), zeros),
			`tensor "t" at byte 24: shape [4294967296 4294967296] has more than 2^63 elements`,
		},
		{
			"product wraps twice", bytesOf(header(1, 0), "t", uint32(3), uint64(1<<62), uint64(4), uint64(1<<60), f32, uint64(0), zeros),
			`tensor "t" at byte 24: shape [4611686018427387904 4 1152921504606846976] has more than 2^63 elements`,
		},
		{
			"bytes overflow", bytesOf(header(1, 0), "t", uint32(2), uint64(1<<31), uint64(1<<31), f32, uint64(0), zeros),
			`tensor "t" at byte 24: size of shape [2147483648 2147483648] in F32 exceeds 2^63 bytes`,
		},
		{
			"row overflows", bytesOf(header(1, 0), "t", uint32(1), uint64(1<<62), f32, uint64(0), zeros),
			`tensor "t" at byte 24: row of 4611686018427387904 values: size of F32 blocks overflows`,
		},
		{
			"row is no whole block", bytesOf(header(1, 0), "t", uint32(1), uint64(33), uint32(tensor.Q8_0), uint64(0), zeros),
			`tensor "t" at byte 24: row of 33 values is not whole Q8_0 blocks of 32`,
		},
		{
			"offset not aligned", bytesOf(header(1, 0), "t", uint32(0), f32, uint64(4), zeros),
			`tensor "t" at byte 24: offset 4 is not a multiple of the alignment 32`,
		},
		{
			"offset outside", bytesOf(header(1, 0), "t", uint32(0), f32, uint64(1<<63), zeros),
			`tensor "t" at byte 64: 4 bytes at data offset 9223372036854775808 end outside the 4081 bytes of tensor data; ` +
				`is the file complete?`,
		},
		{
			"data cut off", bytesOf(header(1, 0), "t", uint32(1), uint64(4096), f32, uint64(0), zeros),
			`tensor "t" at byte 64: 16384 bytes at data offset 0 end outside the 4089 bytes of tensor data; is the file complete?`,
		},
		{
			"overlap", bytesOf(header(2, 0), "a", uint32(1), uint64(9), f32, uint64(32), "b", uint32(1), uint64(9), f32, uint64(0), zeros),
			`tensor data at byte 90: tensor "a" at data offset 32 overlaps tensor "b", which ends at 36`,
		},
		{
			"same bytes twice", bytesOf(header(2, 0), "a", uint32(0), f32, uint64(0), "b", uint32(0), f32, uint64(0), zeros),
			`tensor data at byte 74: tensor "b" at data offset 0 overlaps tensor "a", which ends at 4`,
		},
	}
}

func TestHostile(t *testing.T) {
	for _, c := range hostileFiles() {
		t.Run(c.name, func(t *testing.T) {
			var err error
			allocated := allocatedBytes(func() { _, err = Parse("m.gguf", c.data) })
			if err == nil || err.Error() != "read m.gguf: "+c.want {
				t.Errorf("Parse = %v\nwant read m.gguf: %s", err, c.want)
			}
			if strings.HasSuffix(c.want, "unexpected EOF") && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v is not io.ErrUnexpectedEOF", err)
			}
			if allocated > 256<<10 {
				t.Errorf("Parse allocated %d bytes for a file of %d", allocated, len(c.data))
			}
		})
	}
}

// allocatedBytes measures what f allocates. Tests that run beside it may add to it, so it is for large bounds only.
func allocatedBytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestNestedArrays reads an array of 100 000 arrays, which costs time in proportion to its bytes.
func TestNestedArrays(t *testing.T) {
	rows := make([][]string, 100_000)
	for i := range rows {
		rows[i] = []string{"x"}
	}
	var b Builder
	b.Set("k", rows)
	f, err := Parse("m.gguf", encode(t, &b))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := f.Metadata.Lookup("k")
	n := 0
	for row := range v.Elements() {
		for e := range row.Elements() {
			if s, ok := e.Text(); !ok || s != "x" {
				t.Fatalf("row %d holds %v", n, e)
			}
			n++
		}
	}
	if n != len(rows) || v.ElementKind() != Array {
		t.Errorf("%d elements of %v, want %d arrays", n, v.ElementKind(), len(rows))
	}
	if _, err := f.Metadata.Strings("k"); err == nil || !strings.Contains(err.Error(), "element 0: array is not a string") {
		t.Errorf("Strings of nested arrays = %v", err)
	}
}

// TestUnknownType lists a tensor whose type is of another time, and refuses it by name only when it is used.
func TestUnknownType(t *testing.T) {
	data := bytesOf(header(2, 0), "new", uint32(1), uint64(7), uint32(99), uint64(0), "iq", uint32(1), uint64(256),
		uint32(tensor.IQ2_XS), uint64(32), zeros)
	f, err := Parse("m.gguf", data)
	if err != nil {
		t.Fatal(err)
	}
	unknown, known := &f.Tensors[0], &f.Tensors[1]
	if unknown.Type.String() != "type 99" || unknown.Size != 0 || unknown.Data != nil {
		t.Errorf("tensor of type 99 is %v with %d bytes", unknown.Type, unknown.Size)
	}
	if known.Size != 74 || len(known.Data) != 74 {
		t.Errorf("IQ2_XS tensor has %d bytes, want 74", known.Size)
	}
	for t2, want := range map[*Tensor]string{
		unknown: `tensor "new": tensors of type 99 are not supported`,
		known:   `tensor "iq": tensors of IQ2_XS are not supported`,
	} {
		if _, err := t2.Float32s(); err == nil || err.Error() != want {
			t.Errorf("Float32s = %v, want %s", err, want)
		}
	}
}

// TestVersion2 reads the same bytes under the older number: the layout did not change for little-endian files.
func TestVersion2(t *testing.T) {
	data := encode(t, small(t))
	data[4] = 2
	f, err := Parse("m.gguf", data)
	if err != nil || f.Version != 2 || len(f.Tensors) != 3 {
		t.Errorf("Parse of version 2 = %v, %v", f, err)
	}
}

// TestAlignment places tensors at the alignment that the file asks for.
func TestAlignment(t *testing.T) {
	for _, a := range []uint32{1, 8, 256} {
		var b Builder
		b.Set(KeyAlignment, a)
		b.AddFloat32s("x", []uint64{1}, []float32{1})
		b.AddFloat32s("y", []uint64{1}, []float32{2})
		f, err := Parse("m.gguf", encode(t, &b))
		if err != nil {
			t.Fatal(err)
		}
		y, err := f.Tensors[1].Float32s()
		if err != nil || y[0] != 2 || f.Alignment != int(a) || f.DataStart%int64(a) != 0 {
			t.Errorf("alignment %d: y = %v, %v, data starts at %d", a, y, err, f.DataStart)
		}
	}
}

func TestBuilderRefuses(t *testing.T) {
	for _, c := range []struct {
		fill func(*Builder)
		want string
	}{
		{func(b *Builder) { b.Set("k", 1) }, `build gguf: key "k": a value of type int has no kind in GGUF`},
		{func(b *Builder) { b.Set("k", nil) }, `build gguf: key "k": a value of type <nil> has no kind in GGUF`},
		{func(b *Builder) { b.Set("k", []any{"x"}) }, `build gguf: key "k": a value of type []interface {} has no kind in GGUF`},
		{func(b *Builder) { b.Set("k", "x"); b.Set("k", "y") }, `build gguf: key "k" is set twice`},
		{func(b *Builder) { b.Set(KeyAlignment, uint32(24)) }, `build gguf: alignment 24 is not a power of two below 2^31`},
		{
			func(b *Builder) { b.AddFloat32s("t", []uint64{2}, []float32{1}) },
			`build gguf: tensor "t": shape [2] in F32 takes 8 bytes, got 4`,
		},
		{
			func(b *Builder) { b.AddTensor("t", tensor.Q8_0, []uint64{31}, nil) },
			`build gguf: tensor "t": row of 31 values is not whole Q8_0 blocks of 32`,
		},
	} {
		var b Builder
		c.fill(&b)
		if n, err := b.WriteTo(io.Discard); n != 0 || err == nil || err.Error() != c.want {
			t.Errorf("WriteTo = %d, %v; want %s", n, err, c.want)
		}
	}
}
