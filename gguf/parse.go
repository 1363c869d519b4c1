package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"unicode/utf8"
)

// Limits on what a file may ask for. Real files stay far below: the largest vocabularies give some 15 MB of
// metadata, the largest models some thousands of tensors.
const (
	maxMetadataBytes = 256 << 20 // copied at Open
	maxKeys          = 1 << 16
	maxTensors       = 1 << 20
	maxNameBytes     = 1<<16 - 1 // of keys, GGUF spec v3; applied to tensor names too
	maxDimensions    = 4         // GGML_MAX_DIMS
	maxDepth         = 4         // of arrays within arrays
	defaultAlignment = 32        // GGUF spec v3
)

// KeyAlignment is the metadata key which sets the alignment of tensor data.
const KeyAlignment = "general.alignment"

// parser walks the bytes of a file from front to back. All reading goes through take, which compares each length
// with the bytes left.
type parser struct {
	path string
	data []byte
	at   int // next byte to read, 0 … len(data)

	item  string // what is being read, for errors
	start int    // where it began

	alignmentAt int // where the key of the alignment began
}

// located wraps an error with the place where it was found.
func (p *parser) located(err error) error {
	return &FormatError{Path: p.path, Item: p.item, Offset: int64(p.start), Err: err}
}

// begin notes that the bytes from here on belong to item.
func (p *parser) begin(item string) { p.item, p.start = item, p.at }

// left is the number of bytes not yet read.
func (p *parser) left() uint64 { return uint64(len(p.data) - p.at) }

// take returns the next n bytes.
func (p *parser) take(n uint64) ([]byte, error) {
	if n > p.left() {
		return nil, fmt.Errorf("needs %d bytes at byte %d, the file ends after %d: %w", n, p.at, p.left(), io.ErrUnexpectedEOF)
	}
	b := p.data[p.at : p.at+int(n)]
	p.at += int(n)
	return b, nil
}

func (p *parser) uint32() (uint32, error) {
	b, err := p.take(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (p *parser) uint64() (uint64, error) {
	b, err := p.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// string reads a length and as many bytes.
func (p *parser) string() ([]byte, error) {
	n, err := p.uint64()
	if err != nil {
		return nil, fmt.Errorf("length of string: %w", err)
	}
	b, err := p.take(n)
	if err != nil {
		return nil, fmt.Errorf("string: %w", err)
	}
	return b, nil
}

// name reads the name of a key or tensor, which must be text since it is printed and looked up.
func (p *parser) name() (string, error) {
	b, err := p.string()
	if err != nil {
		return "", fmt.Errorf("name: %w", err)
	}
	switch {
	case len(b) == 0:
		return "", errors.New("name is empty")
	case len(b) > maxNameBytes:
		return "", fmt.Errorf("name of %d bytes exceeds %d", len(b), maxNameBytes)
	case !utf8.Valid(b):
		return "", fmt.Errorf("name %.80q is not UTF-8", b)
	}
	return string(b), nil
}

// file reads the whole file.
func (p *parser) file() (*File, error) {
	f := &File{Path: p.path, Size: int64(len(p.data))}
	tensorCount, keyCount, err := p.header(f)
	if err != nil {
		return nil, err
	}
	if err := p.metadata(&f.Metadata, int(keyCount)); err != nil {
		return nil, err
	}
	if f.Alignment, err = p.alignment(&f.Metadata); err != nil {
		return nil, err
	}
	if err := p.tensorTable(f, int(tensorCount)); err != nil {
		return nil, err
	}
	return f, p.tensorData(f)
}

// header reads the fixed fields and bounds the two counts by the smallest entries that the rest of the file could hold.
func (p *parser) header(f *File) (tensors, keys uint64, err error) {
	p.begin("header")
	if err := sniff(p.data); err != nil {
		return 0, 0, err
	}
	p.at = len(magic)
	if f.Version, err = p.uint32(); err != nil {
		return 0, 0, fmt.Errorf("version: %w", err)
	}
	if err := checkVersion(f.Version); err != nil {
		return 0, 0, err
	}
	if tensors, err = p.uint64(); err != nil {
		return 0, 0, fmt.Errorf("tensor count: %w", err)
	}
	if keys, err = p.uint64(); err != nil {
		return 0, 0, fmt.Errorf("key count: %w", err)
	}
	const keyBytes, tensorBytes = 8 + 1 + 4 + 1, 8 + 1 + 4 + 4 + 8 // one-byte name and value; no dimensions
	if most := min(p.left()/keyBytes, maxKeys); keys > most {
		return 0, 0, fmt.Errorf("%d metadata keys, but at most %d fit in the %d bytes left", keys, most, p.left())
	}
	if most := min(p.left()/tensorBytes, maxTensors); tensors > most {
		return 0, 0, fmt.Errorf("%d tensors, but at most %d fit in the %d bytes left", tensors, most, p.left())
	}
	return tensors, keys, nil
}

// metadata reads all keys, checks their values, and copies them.
func (p *parser) metadata(m *Metadata, count int) error {
	type span struct{ from, to int }
	spans := make([]span, 0, min(count, 1024))
	*m = Metadata{path: p.path, byKey: make(map[string]int, min(count, 1024))}
	base := p.at
	for i := range count {
		p.begin(fmt.Sprintf("key %d of %d", i+1, count))
		key, err := p.name()
		if err != nil {
			return err
		}
		p.item = fmt.Sprintf("key %q", key)
		if _, twice := m.byKey[key]; twice {
			return errors.New("key occurs twice")
		}
		if key == KeyAlignment {
			p.alignmentAt = p.start
		}
		kind, err := p.uint32()
		if err != nil {
			return fmt.Errorf("kind of value: %w", err)
		}
		from := p.at
		if err := p.value(Kind(kind), 0); err != nil {
			return err
		}
		if p.at-base > maxMetadataBytes {
			return fmt.Errorf("metadata exceeds %d bytes", maxMetadataBytes)
		}
		m.byKey[key] = len(m.entries)
		m.entries = append(m.entries, entry{key, Value{kind: Kind(kind)}})
		spans = append(spans, span{from - base, p.at - base})
	}
	copied := string(p.data[base:p.at])
	for i, s := range spans {
		m.entries[i].value.raw = copied[s.from:s.to]
	}
	return nil
}

// value checks one value and moves past it.
func (p *parser) value(kind Kind, depth int) error {
	switch kind {
	case String:
		_, err := p.string()
		return err
	case Array:
		return p.array(depth + 1)
	case Bool:
		return p.bools(1)
	}
	size := kind.size()
	if size == 0 {
		return fmt.Errorf("unknown kind of value %d", uint32(kind))
	}
	_, err := p.take(uint64(size))
	return err
}

// array checks an array and moves past it.
func (p *parser) array(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("arrays nested deeper than %d", maxDepth)
	}
	number, err := p.uint32()
	if err != nil {
		return fmt.Errorf("kind of array elements: %w", err)
	}
	count, err := p.uint64()
	if err != nil {
		return fmt.Errorf("length of array: %w", err)
	}
	kind := Kind(number)
	least := kind.leastBytes()
	if least == 0 {
		return fmt.Errorf("unknown kind of array elements %d", number)
	}
	if count > p.left()/uint64(least) {
		return fmt.Errorf("array of %d elements of at least %d bytes exceeds the %d bytes left: %w",
			count, least, p.left(), io.ErrUnexpectedEOF)
	}
	switch kind {
	case Bool:
		return p.bools(count)
	case String, Array:
		for i := range count {
			if err := p.value(kind, depth); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		return nil
	}
	_, err = p.take(count * uint64(least))
	return err
}

// bools checks n bytes that must be 0 or 1.
func (p *parser) bools(n uint64) error {
	b, err := p.take(n)
	if err != nil {
		return err
	}
	for _, v := range b {
		if v > 1 {
			return fmt.Errorf("boolean is %d, want 0 or 1", v)
		}
	}
	return nil
}

// alignment returns the alignment of tensor data.
func (p *parser) alignment(m *Metadata) (int, error) {
	if !m.Has(KeyAlignment) {
		return defaultAlignment, nil
	}
	p.item, p.start = fmt.Sprintf("key %q", KeyAlignment), p.alignmentAt
	a, err := m.Uint(KeyAlignment)
	if err != nil {
		return 0, errors.Unwrap(err) // path and key are named by the item
	}
	return int(a), checkAlignment(a)
}

// checkAlignment refuses an alignment that is no power of two or does not fit an int32.
func checkAlignment(a uint64) error {
	if bits.OnesCount64(a) != 1 || a > math.MaxInt32 {
		return fmt.Errorf("alignment %d is not a power of two below 2^31", a)
	}
	return nil
}
