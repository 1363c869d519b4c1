package gguf

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quire-ai/quire/internal/tensor"
)

// small returns a file with a value of every kind and three tensors.
func small(t testing.TB) *Builder {
	t.Helper()
	b := new(Builder)
	b.Set("general.architecture", "llama")
	b.Set("t.u8", uint8(200))
	b.Set("t.i8", int8(-100))
	b.Set("t.u16", uint16(60000))
	b.Set("t.i16", int16(-30000))
	b.Set("t.u32", uint32(4e9))
	b.Set("t.i32", int32(-2e9))
	b.Set("t.u64", uint64(1)<<63)
	b.Set("t.i64", int64(-1)<<63)
	b.Set("t.f32", float32(0.1))
	b.Set("t.f64", 0.1)
	b.Set("t.yes", true)
	b.Set("t.no", false)
	b.Set("t.strings", []string{"a", "", "Ġthe", "\xff"})
	b.Set("t.ints", []int32{1, -2, 3})
	b.Set("t.floats", []float32{0.5, -1})
	b.Set("t.bools", []bool{true, false})
	b.Set("t.nested", [][]string{{"x", "y"}, {}})
	b.Set("t.empty", []string{})
	b.AddFloat32s("norm.weight", []uint64{4}, []float32{1, 2, 3, 4})
	b.AddTensor("scale", tensor.F16, nil, []byte{0x00, 0x3c})
	b.AddTensor("blk.0.w", tensor.Q8_0, []uint64{32, 2}, make([]byte, 68))
	return b
}

func encode(t testing.TB, b *Builder) []byte {
	t.Helper()
	var buf bytes.Buffer
	n, err := b.WriteTo(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(buf.Len()) {
		t.Fatalf("WriteTo = %d, wrote %d bytes", n, buf.Len())
	}
	return buf.Bytes()
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "small.gguf")
	if err := small(t).WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	m := &f.Metadata
	check := func(got any, err error, want any) {
		t.Helper()
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
	arch, err := m.String("general.architecture")
	check(arch, err, "llama")
	for key, want := range map[string]int64{
		"t.u8": 200, "t.i8": -100, "t.u16": 60000, "t.i16": -30000, "t.u32": 4e9,
		"t.i32": -2e9, "t.i64": -1 << 63,
	} {
		i, err := m.Int(key)
		check(i, err, want)
	}
	u, err := m.Uint("t.u64")
	check(u, err, uint64(1)<<63)
	x, err := m.Float("t.f32")
	check(x, err, float64(float32(0.1)))
	x, err = m.Float("t.f64")
	check(x, err, 0.1)
	yes, err := m.Bool("t.yes")
	check(yes, err, true)
	no, err := m.BoolOr("t.no", true)
	check(no, err, false)
	absent, err := m.UintOr("t.absent", 7)
	check(absent, err, uint64(7))
	strs, err := m.Strings("t.strings")
	check(strs, err, []string{"a", "", "Ġthe", "\xff"})
	ints, err := m.Ints("t.ints")
	check(ints, err, []int64{1, -2, 3})
	floats, err := m.Floats("t.floats")
	check(floats, err, []float64{0.5, -1})
	bools, err := m.Bools("t.bools")
	check(bools, err, []bool{true, false})
	empty, err := m.Strings("t.empty")
	check(empty, err, []string{})
	nested, _ := m.Lookup("t.nested")
	check(nested.String(), nil, `[["x", "y"], []]`)

	norm, ok := f.Tensor("norm.weight")
	if !ok {
		t.Fatal("norm.weight is not there")
	}
	values, err := norm.Float32s()
	check(values, err, []float32{1, 2, 3, 4})
	scale, _ := f.Tensor("scale")
	values, err = scale.Float32s()
	check(values, err, []float32{1})
	check(len(f.Tensors), nil, 3)
	check(f.Tensors[2].Elements(), nil, uint64(64))

	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	check(strs[2], nil, "Ġthe") // metadata outlives Close
	if _, err := norm.Float32s(); err == nil {
		t.Error("Float32s after Close gave no error")
	}
}

func TestGetterErrors(t *testing.T) {
	f, err := Parse("m.gguf", encode(t, small(t)))
	if err != nil {
		t.Fatal(err)
	}
	m := &f.Metadata
	var errs []string
	note := func(_ any, err error) { errs = append(errs, err.Error()) }
	note(m.String("absent"))
	note(m.String("t.u8"))
	note(m.Uint("t.i8"))
	note(m.Int("t.u64"))
	note(m.UintOr("t.f32", 1))
	note(m.Strings("general.architecture"))
	note(m.Uints("t.ints"))
	note(m.Floats("t.strings"))
	want := []string{
		`read m.gguf: key "absent": key is missing`,
		`read m.gguf: key "t.u8": uint8 200 is not a string`,
		`read m.gguf: key "t.i8": int8 -100 is not a non-negative integer`,
		`read m.gguf: key "t.u64": uint64 9223372036854775808 is not an int64`,
		`read m.gguf: key "t.f32": float32 0.1 is not a non-negative integer`,
		`read m.gguf: key "general.architecture": string is not an array`,
		`read m.gguf: key "t.ints": element 1: int32 -2 is not a non-negative integer`,
		`read m.gguf: key "t.strings": element 0: string is not a float`,
	}
	if diff := cmp.Diff(want, errs); diff != "" {
		t.Error(diff)
	}
	if _, err := m.String("absent"); !errors.Is(err, ErrMissing) {
		t.Errorf("%v is not ErrMissing", err)
	}
}

// TestCopy builds a file from the parts of another and gets the same bytes.
func TestCopy(t *testing.T) {
	whole := encode(t, small(t))
	f, err := Parse("m.gguf", whole)
	if err != nil {
		t.Fatal(err)
	}
	var b Builder
	for key, v := range f.Metadata.All() {
		b.SetValue(key, v)
	}
	for _, x := range f.Tensors {
		b.AddTensor(x.Name, x.Type, x.Shape, x.Data)
	}
	if !bytes.Equal(encode(t, &b), whole) {
		t.Error("the copy differs")
	}
}

// TestTruncatedEverywhere cuts a file at every byte. Each piece must give an error, never a panic, except when only
// the last padding is lost.
func TestTruncatedEverywhere(t *testing.T) {
	whole := encode(t, small(t))
	f, err := Parse("m.gguf", whole)
	if err != nil {
		t.Fatal(err)
	}
	last := f.Tensors[len(f.Tensors)-1]
	end := int(f.DataStart) + int(last.Offset+last.Size)
	for n := range whole {
		f, err := Parse("m.gguf", whole[:n:n])
		if (err == nil) != (n >= end) {
			t.Fatalf("Parse of the first %d of %d bytes: %v", n, len(whole), err)
		}
		if err == nil {
			continue
		}
		if formatError, ok := errors.AsType[*FormatError](err); !ok || formatError.Path != "m.gguf" || f != nil {
			t.Fatalf("Parse of the first %d bytes = %v, %v; want a FormatError", n, f, err)
		}
	}
}

// TestBitFlips damages every byte in turn in two ways. Whatever is accepted must be safe to read.
func TestBitFlips(t *testing.T) {
	whole := encode(t, small(t))
	for i := range whole {
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			damaged := slices.Clone(whole)
			damaged[i] ^= mask
			if f, err := Parse("m.gguf", damaged); err == nil {
				readAll(f)
			}
		}
	}
}

// readAll touches everything in a file, so that a fault in checking shows as a panic.
func readAll(f *File) {
	for _, v := range f.Metadata.All() {
		_ = v.String()
		for e := range v.Elements() {
			_ = e.String()
		}
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if uint64(len(t.Data)) != t.Size {
			panic("size of tensor " + t.Name)
		}
		if t.Elements() < 1<<20 {
			_, _ = t.Float32s()
		}
	}
}

func TestNotGGUF(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"", "it is empty"},
		{"GG", "it has only 2 bytes"},
		{
			"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
			"it is a Git LFS pointer; the file itself was not fetched (git lfs pull)",
		},
		{"\x02\x00\x00\x00\x00\x00\x00\x00{}", "it is a safetensors file; convert it to GGUF"},
		{"PK\x03\x04....", "it is a zip archive, perhaps a PyTorch checkpoint or a wheel"},
		{"<!doctype html>", "it is a web page or XML; the download gave an error page"},
		{"{\"error\":1}", "it is JSON"},
		{"tjgg\x03\x00\x00\x00", "it is a GGJT file of llama.cpp before GGUF; convert the model again"},
		{"\x7fELF....", `it begins with "\x7fELF", want "GGUF"`},
	} {
		_, err := Parse("m.gguf", []byte(c.data))
		if want := "read m.gguf: header at byte 0: not a GGUF file: " + c.want; err == nil || err.Error() != want {
			t.Errorf("Parse(%.12q) = %v, want %s", c.data, err, want)
		}
		if !errors.Is(err, ErrNotGGUF) {
			t.Errorf("Parse(%.12q) = %v, want ErrNotGGUF", c.data, err)
		}
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil || !strings.HasSuffix(err.Error(), "not a regular file but a directory") {
		t.Errorf("Open(directory) = %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none.gguf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open(absent file) = %v, want ErrNotExist", err)
	}
	empty := filepath.Join(dir, "empty.gguf")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(empty); !errors.Is(err, ErrNotGGUF) {
		t.Errorf("Open(empty file) = %v, want ErrNotGGUF", err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(encode(f, small(f)))
	for _, h := range hostileFiles() {
		f.Add(h.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("fuzz.gguf", data)
		if err != nil {
			if _, ok := errors.AsType[*FormatError](err); !ok {
				t.Fatalf("%v is no FormatError", err)
			}
			return
		}
		readAll(file)
	})
}
