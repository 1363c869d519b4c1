package gguf

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
)

// Kind is the kind of a metadata value, numbered as gguf_metadata_value_type.
type Kind uint32

// The kinds of GGUF spec v3.
const (
	Uint8   Kind = 0
	Int8    Kind = 1
	Uint16  Kind = 2
	Int16   Kind = 3
	Uint32  Kind = 4
	Int32   Kind = 5
	Float32 Kind = 6
	Bool    Kind = 7
	String  Kind = 8
	Array   Kind = 9
	Uint64  Kind = 10
	Int64   Kind = 11
	Float64 Kind = 12
)

// kinds holds name and size in bytes of each kind; size 0 means that it varies. It never changes.
var kinds = [...]struct {
	name string
	size int
}{
	Uint8: {"uint8", 1}, Int8: {"int8", 1}, Uint16: {"uint16", 2}, Int16: {"int16", 2}, Uint32: {"uint32", 4},
	Int32: {"int32", 4}, Float32: {"float32", 4}, Bool: {"bool", 1}, String: {"string", 0}, Array: {"array", 0},
	Uint64: {"uint64", 8}, Int64: {"int64", 8}, Float64: {"float64", 8},
}

// String returns the kind's name, such as "uint32".
func (k Kind) String() string {
	if uint64(k) < uint64(len(kinds)) {
		return kinds[k].name
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

// size is the size of a value in bytes, 0 for strings, arrays and unknown kinds.
func (k Kind) size() int {
	if uint64(k) < uint64(len(kinds)) {
		return kinds[k].size
	}
	return 0
}

// leastBytes is the smallest size of a value in bytes, 0 for unknown kinds.
func (k Kind) leastBytes() int {
	switch k {
	case String:
		return 8 // length
	case Array:
		return 4 + 8 // kind, count
	}
	return k.size()
}

// Value is one metadata value. It is small, may be copied, and does not depend on the file staying open. Its bytes
// were checked when the file was opened, so reading a value of the right kind cannot fail.
type Value struct {
	kind Kind
	raw  string // as in the file, without the kind
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind { return v.kind }

// ElementKind returns the kind of an array's elements.
func (v Value) ElementKind() Kind {
	if v.kind != Array {
		return v.kind
	}
	return Kind(uint32At(v.raw, 0))
}

// Len returns the number of elements of an array, 1 for any other value.
func (v Value) Len() int {
	if v.kind != Array {
		return 1
	}
	return int(uint64At(v.raw, 4))
}

// Elements yields the elements of an array; a value that is not an array yields itself.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.kind != Array {
			yield(v)
			return
		}
		kind, rest := v.ElementKind(), v.raw[12:]
		for range v.Len() {
			n := encodedBytes(kind, rest)
			if !yield(Value{kind, rest[:n]}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// encodedBytes is the size of the value of that kind with which raw begins.
func encodedBytes(kind Kind, raw string) int {
	switch kind {
	case String:
		return 8 + int(uint64At(raw, 0))
	case Array:
		element, count := Kind(uint32At(raw, 0)), int(uint64At(raw, 4))
		if size := element.size(); size > 0 {
			return 12 + count*size
		}
		n := 12
		for range count {
			n += encodedBytes(element, raw[n:])
		}
		return n
	}
	return kind.size()
}

// Text returns a string value.
func (v Value) Text() (string, bool) {
	if v.kind != String {
		return "", false
	}
	return v.raw[8:], true
}

// Bool returns a boolean value.
func (v Value) Bool() (value, ok bool) {
	if v.kind != Bool {
		return false, false
	}
	return v.raw[0] != 0, true
}

// Int returns an integer of any kind that fits an int64.
func (v Value) Int() (int64, bool) {
	switch v.kind {
	case Int8:
		return int64(int8(v.raw[0])), true
	case Int16:
		return int64(int16(uint16At(v.raw, 0))), true
	case Int32:
		return int64(int32(uint32At(v.raw, 0))), true
	case Int64:
		return int64(uint64At(v.raw, 0)), true
	}
	u, ok := v.Uint()
	return int64(u), ok && u <= math.MaxInt64
}

// Uint returns an integer of any kind that is not negative.
func (v Value) Uint() (uint64, bool) {
	switch v.kind {
	case Uint8:
		return uint64(v.raw[0]), true
	case Uint16:
		return uint64(uint16At(v.raw, 0)), true
	case Uint32:
		return uint64(uint32At(v.raw, 0)), true
	case Uint64:
		return uint64At(v.raw, 0), true
	case Int8, Int16, Int32, Int64:
		i, _ := v.Int()
		return uint64(i), i >= 0
	}
	return 0, false
}

// Float returns a floating-point number of either kind.
func (v Value) Float() (float64, bool) {
	switch v.kind {
	case Float32:
		return float64(math.Float32frombits(uint32At(v.raw, 0))), true
	case Float64:
		return math.Float64frombits(uint64At(v.raw, 0)), true
	}
	return 0, false
}

// String formats the value for people: strings quoted, arrays by their first few elements and their length.
func (v Value) String() string {
	const shown = 8
	switch v.kind {
	case String:
		return strconv.Quote(v.raw[8:])
	case Bool:
		return strconv.FormatBool(v.raw[0] != 0)
	case Float32:
		f, _ := v.Float()
		return strconv.FormatFloat(f, 'g', -1, 32)
	case Float64:
		f, _ := v.Float()
		return strconv.FormatFloat(f, 'g', -1, 64)
	case Uint64:
		return strconv.FormatUint(uint64At(v.raw, 0), 10)
	case Array:
		var parts []string
		for e := range v.Elements() {
			if len(parts) == shown {
				return fmt.Sprintf("[%s, …] (%d of %v)", strings.Join(parts, ", "), v.Len(), v.ElementKind())
			}
			parts = append(parts, e.String())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	i, _ := v.Int()
	return strconv.FormatInt(i, 10)
}

// The three functions below read little-endian numbers out of a string; the conversions do not allocate.

func uint16At(s string, at int) uint16 { return binary.LittleEndian.Uint16([]byte(s[at : at+2])) }
func uint32At(s string, at int) uint32 { return binary.LittleEndian.Uint32([]byte(s[at : at+4])) }
func uint64At(s string, at int) uint64 { return binary.LittleEndian.Uint64([]byte(s[at : at+8])) }
