package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
)

// Builder makes a GGUF file (version 3). The zero value is an empty file. Faults are remembered and reported by
// WriteTo, so that a file can be described without checking each line:
//
//	var b gguf.Builder
//	b.Set("general.architecture", "llama")
//	b.Set("llama.block_count", uint32(2))
//	b.AddFloat32s("output_norm.weight", []uint64{64}, weights)
//	err := b.WriteFile("tiny.gguf")
//
// A Builder is for one goroutine.
type Builder struct {
	alignment int // 0 means the default
	keys      []byte
	keyCount  uint64
	tensors   []Tensor
	seen      map[string]bool // keys and tensor names, prefixed by "key " and "tensor "
	err       error           // first fault
}

// Set adds a metadata key. The value is a string, a bool, a sized number (uint8 … float64) or a slice of these; its
// Go type decides the kind in the file, and int and uint are refused since they name none. Setting general.alignment
// also aligns the tensor data.
func (b *Builder) Set(key string, value any) {
	if !b.add("key", key) {
		return
	}
	if a, ok := value.(uint32); ok && key == KeyAlignment {
		if err := checkAlignment(uint64(a)); err != nil {
			b.fail(err)
			return
		}
		b.alignment = int(a)
	}
	v := reflect.ValueOf(value)
	kind, ok := kindOf(v)
	if !ok {
		b.fail(fmt.Errorf("key %q: a value of type %T has no kind in GGUF", key, value))
		return
	}
	b.keys = appendString(b.keys, key)
	b.keys = binary.LittleEndian.AppendUint32(b.keys, uint32(kind))
	keys, err := appendValue(b.keys, v)
	if err != nil {
		b.fail(fmt.Errorf("key %q: %w", key, err))
	}
	b.keys = keys
	b.keyCount++
}

// SetValue adds a metadata key with a value of another file, as it is there. The alignment of tensor data is Set's.
func (b *Builder) SetValue(key string, v Value) {
	if !b.add("key", key) {
		return
	}
	b.keys = appendString(b.keys, key)
	b.keys = binary.LittleEndian.AppendUint32(b.keys, uint32(v.kind))
	b.keys = append(b.keys, v.raw...)
	b.keyCount++
}

// AddTensor adds a tensor whose bytes are already in the format t. Shape is in GGUF's order, row length first. The
// Builder keeps shape and data until WriteTo.
func (b *Builder) AddTensor(name string, t DType, shape []uint64, data []byte) {
	if !b.add("tensor", name) {
		return
	}
	size, err := sizeBytes(t, shape)
	switch {
	case err != nil:
		b.fail(fmt.Errorf("tensor %q: %w", name, err))
	case t.Known() && uint64(len(data)) != size:
		b.fail(fmt.Errorf("tensor %q: shape %v in %v takes %d bytes, got %d", name, shape, t, size, len(data)))
	}
	b.tensors = append(b.tensors, Tensor{Name: name, Type: t, Shape: shape, Data: data})
}

// AddFloat32s adds a tensor of type F32.
func (b *Builder) AddFloat32s(name string, shape []uint64, values []float32) {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	b.AddTensor(name, F32, shape, data)
}

// WriteTo writes the file. It reports the first fault of the calls before it instead of writing a faulty file.
func (b *Builder) WriteTo(w io.Writer) (int64, error) {
	if b.err != nil {
		return 0, fmt.Errorf("build gguf: %w", b.err)
	}
	out := &countingWriter{w: w}
	header := append([]byte(magic), 3, 0, 0, 0)
	header = binary.LittleEndian.AppendUint64(header, uint64(len(b.tensors)))
	header = binary.LittleEndian.AppendUint64(header, b.keyCount)
	header = append(header, b.keys...)
	offset := uint64(0)
	for _, t := range b.tensors {
		header = appendString(header, t.Name)
		header = binary.LittleEndian.AppendUint32(header, uint32(len(t.Shape)))
		for _, d := range t.Shape {
			header = binary.LittleEndian.AppendUint64(header, d)
		}
		header = binary.LittleEndian.AppendUint32(header, uint32(t.Type))
		header = binary.LittleEndian.AppendUint64(header, offset)
		offset += uint64(len(t.Data) + b.padding(len(t.Data)))
	}
	out.write(header)
	out.write(make([]byte, b.padding(len(header))))
	for _, t := range b.tensors {
		out.write(t.Data)
		out.write(make([]byte, b.padding(len(t.Data))))
	}
	return out.n, out.err
}

// WriteFile writes the file to path.
func (b *Builder) WriteFile(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := b.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// padding is the number of bytes which bring n to a multiple of the alignment.
func (b *Builder) padding(n int) int {
	a := b.alignment
	if a <= 0 {
		a = defaultAlignment
	}
	return (a - n%a) % a
}

// add notes a name, and tells whether it is new and nothing went wrong before.
func (b *Builder) add(what, name string) bool {
	if b.seen == nil {
		b.seen = make(map[string]bool)
	}
	id := what + " " + name
	if b.seen[id] {
		b.fail(fmt.Errorf("%s %q is set twice", what, name))
	}
	b.seen[id] = true
	return b.err == nil
}

// fail remembers the first fault.
func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// countingWriter counts bytes and keeps the first error.
type countingWriter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *countingWriter) write(p []byte) {
	if c.err != nil {
		return
	}
	n, err := c.w.Write(p)
	c.n, c.err = c.n+int64(n), err
}

// kindOf returns the kind that a Go value has in a file.
func kindOf(v reflect.Value) (Kind, bool) {
	if !v.IsValid() {
		return 0, false
	}
	return kindOfType(v.Type())
}

func kindOfType(t reflect.Type) (Kind, bool) {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		_, ok := kindOfType(t.Elem())
		return Array, ok
	case reflect.String:
		return String, true
	case reflect.Bool:
		return Bool, true
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return 0, false
	}
	for k := range kinds {
		if kinds[k].name == t.Kind().String() {
			return Kind(k), true
		}
	}
	return 0, false
}

// appendValue appends a value as it is in a file, without its kind.
func appendValue(dst []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.String:
		return appendString(dst, v.String()), nil
	case reflect.Slice, reflect.Array:
		element, ok := kindOfType(v.Type().Elem())
		if !ok {
			return dst, fmt.Errorf("elements of type %v have no kind in GGUF", v.Type().Elem())
		}
		dst = binary.LittleEndian.AppendUint32(dst, uint32(element))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v.Len()))
		for i := range v.Len() {
			var err error
			if dst, err = appendValue(dst, v.Index(i)); err != nil {
				return dst, err
			}
		}
		return dst, nil
	}
	return binary.Append(dst, binary.LittleEndian, v.Interface())
}

// appendString appends the length of s and its bytes.
func appendString(dst []byte, s string) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(s)))
	return append(dst, s...)
}
