package gguf

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/quire-ai/quire/internal/tensor"
)

// tensorTable reads the names, shapes, types and offsets of all tensors.
func (p *parser) tensorTable(f *File, count int) error {
	f.Tensors = make([]Tensor, 0, min(count, 1024))
	f.byName = make(map[string]int, min(count, 1024))
	for i := range count {
		p.begin(fmt.Sprintf("tensor %d of %d", i+1, count))
		name, err := p.name()
		if err != nil {
			return err
		}
		p.item = fmt.Sprintf("tensor %q", name)
		if _, twice := f.byName[name]; twice {
			return errors.New("name occurs twice")
		}
		t := Tensor{Name: name}
		if err := p.tensorInfo(&t); err != nil {
			return err
		}
		if t.Offset%uint64(f.Alignment) != 0 {
			return fmt.Errorf("offset %d is not a multiple of the alignment %d", t.Offset, f.Alignment)
		}
		f.byName[name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
	}
	return nil
}

// tensorInfo reads shape, type and offset, and computes the size.
func (p *parser) tensorInfo(t *Tensor) error {
	dimensions, err := p.uint32()
	if err != nil {
		return fmt.Errorf("number of dimensions: %w", err)
	}
	if dimensions > maxDimensions {
		return fmt.Errorf("%d dimensions exceed %d", dimensions, maxDimensions)
	}
	t.Shape = make([]uint64, dimensions)
	for i := range t.Shape {
		if t.Shape[i], err = p.uint64(); err != nil {
			return fmt.Errorf("dimension %d: %w", i, err)
		}
	}
	number, err := p.uint32()
	if err != nil {
		return fmt.Errorf("type: %w", err)
	}
	t.Type = DType(number)
	if t.Offset, err = p.uint64(); err != nil {
		return fmt.Errorf("offset: %w", err)
	}
	t.Size, err = sizeBytes(t.Type, t.Shape)
	return err
}

// sizeBytes returns the size of a tensor, 0 if its type is not known. It refuses shapes with no elements, rows that
// are not whole blocks, and sizes that do not fit an int64.
func sizeBytes(t DType, shape []uint64) (uint64, error) {
	elements := uint64(1)
	for i, d := range shape {
		if d == 0 {
			return 0, fmt.Errorf("dimension %d of %v is 0", i, shape)
		}
		high, low := bits.Mul64(elements, d)
		if high != 0 || low > math.MaxInt64 {
			return 0, fmt.Errorf("shape %v has more than 2^63 elements", shape)
		}
		elements = low
	}
	if !t.Known() {
		return 0, nil
	}
	row := 1
	if len(shape) > 0 {
		if shape[0] > math.MaxInt {
			return 0, fmt.Errorf("row of %d values does not fit the address space", shape[0])
		}
		row = int(shape[0])
	}
	rowBytes, err := tensor.RowBytes(t, row)
	if err != nil {
		return 0, err
	}
	high, size := bits.Mul64(uint64(rowBytes), elements/uint64(row))
	if high != 0 || size > math.MaxInt64 {
		return 0, fmt.Errorf("size of shape %v in %v exceeds 2^63 bytes", shape, t)
	}
	return size, nil
}

// tensorData finds where tensor data begins and gives each tensor its bytes.
func (p *parser) tensorData(f *File) error {
	f.DataStart = int64(p.at+f.Alignment-1) / int64(f.Alignment) * int64(f.Alignment)
	if len(f.Tensors) == 0 {
		return nil
	}
	p.begin("tensor data")
	if f.DataStart > f.Size {
		return fmt.Errorf("tensor data begins at byte %d, the file has %d", f.DataStart, f.Size)
	}
	room := uint64(f.Size - f.DataStart)
	for i := range f.Tensors {
		t := &f.Tensors[i]
		p.item, p.start = fmt.Sprintf("tensor %q", t.Name), int(f.DataStart)
		if t.Offset > room || t.Size > room-t.Offset {
			return fmt.Errorf("%d bytes at data offset %d end outside the %d bytes of tensor data; is the file complete?",
				t.Size, t.Offset, room)
		}
		if t.Type.Known() {
			from := f.DataStart + int64(t.Offset)
			t.Data = p.data[from : from+int64(t.Size) : from+int64(t.Size)]
		}
	}
	p.begin("tensor data")
	return checkOverlap(f.Tensors)
}
