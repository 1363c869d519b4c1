package gguf

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/quire-ai/quire/internal/tensor"
)

// File is an open GGUF file. Its fields are read-only, and may be read by many goroutines at once; Close may run
// only when nobody reads tensor data any more.
type File struct {
	Path      string
	Version   uint32   // of the format: 2 or 3
	Alignment int      // of tensor data, in bytes; a power of two
	Metadata  Metadata // stays valid after Close
	Tensors   []Tensor // in the file's order
	Size      int64    // of the file, in bytes
	DataStart int64    // where tensor data begins, in bytes from the start of the file

	byName  map[string]int // index into Tensors
	mapping []byte         // nil when the file was parsed from memory or is closed
}

// Tensor is one entry of the tensor table.
type Tensor struct {
	Name string
	Type DType

	// Shape is in GGUF's order: Shape[0] is the length of a row, whose values lie next to each other. A scalar has no
	// dimensions.
	Shape []uint64

	Offset uint64 // of the first byte, from File.DataStart
	Size   uint64 // in bytes; 0 when the type is not known
	Data   []byte // view of the file, valid until Close; nil when the type is not known
}

// Elements returns the number of values in the tensor. Open has checked that it fits an int64.
func (t *Tensor) Elements() uint64 {
	n := uint64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Float32s returns the tensor's values as float32, dequantised. It is meant for small tensors and for tests: the
// result is a new slice of four bytes a value.
func (t *Tensor) Float32s() ([]float32, error) {
	if !t.Type.CanDequantize() {
		return nil, fmt.Errorf("tensor %q: tensors of %v are not supported", t.Name, t.Type)
	}
	if t.Data == nil {
		return nil, fmt.Errorf("tensor %q: the file is closed", t.Name)
	}
	dst := make([]float32, t.Elements())
	if err := tensor.Dequantize(t.Type, dst, t.Data); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return dst, nil
}

// Open maps the file at path into memory and checks it. The caller must Close it.
func Open(path string) (*File, error) {
	osFile, err := os.Open(path)
	if err != nil {
		return nil, err // names the operation and the path already
	}
	defer osFile.Close()
	info, err := osFile.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file but %s", path, describeMode(info.Mode()))
	}
	if info.Size() > math.MaxInt {
		return nil, fmt.Errorf("open %s: %d bytes do not fit the address space", path, info.Size())
	}
	data, err := mapFile(osFile, int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	f, err := Parse(path, data)
	if err != nil {
		return nil, errors.Join(err, unmapFile(data))
	}
	f.mapping = data
	return f, nil
}

// Parse reads a GGUF file that is in memory already. path is used in errors only. Tensors are views of data, which
// the caller must not change while the File is in use; Close does nothing to it.
func Parse(path string, data []byte) (*File, error) {
	p := &parser{path: path, data: data}
	f, err := p.file()
	if err != nil {
		return nil, p.located(err)
	}
	return f, nil
}

// Close unmaps the file. Data of its tensors, and slices of it, must not be touched afterwards; metadata may.
// Closing twice is harmless.
func (f *File) Close() error {
	for i := range f.Tensors {
		f.Tensors[i].Data = nil
	}
	mapping := f.mapping
	f.mapping = nil
	if err := unmapFile(mapping); err != nil {
		return fmt.Errorf("unmap %s: %w", f.Path, err)
	}
	return nil
}

// Tensor returns the tensor of that name.
func (f *File) Tensor(name string) (*Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return nil, false
	}
	return &f.Tensors[i], true
}

// describeMode says what a path that is no regular file is.
func describeMode(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&os.ModeNamedPipe != 0:
		return "a pipe"
	case m&os.ModeDevice != 0:
		return "a device"
	}
	return m.Type().String()
}

// checkOverlap refuses tensors that share bytes.
func checkOverlap(tensors []Tensor) error {
	order := make([]int, 0, len(tensors))
	for i := range tensors {
		if tensors[i].Type.Known() {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if tensors[a].Offset < tensors[b].Offset {
			return -1
		}
		return 1
	})
	for i := 1; i < len(order); i++ {
		before, t := &tensors[order[i-1]], &tensors[order[i]]
		if end := before.Offset + before.Size; end > t.Offset {
			return fmt.Errorf("tensor %q at data offset %d overlaps tensor %q, which ends at %d", t.Name, t.Offset, before.Name, end)
		}
	}
	return nil
}
