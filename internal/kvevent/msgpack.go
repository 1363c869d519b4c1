package kvevent

import "encoding/binary"

// The part of msgpack (spec.md of msgpack/msgpack) that events need.

const msgNil = 0xc0

// appendHash writes eight bytes always: llm-d refuses small integers as hashes ("unsupported hash type: uint16").
func appendHash(dst []byte, h uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 0xcf), h)
}

// appendInt writes a number that is not negative and fits 32 bits, in the fewest bytes.
func appendInt(dst []byte, n int) []byte {
	switch {
	case n < 1<<7:
		return append(dst, byte(n))
	case n < 1<<8:
		return append(dst, 0xcc, byte(n))
	case n < 1<<16:
		return append(dst, 0xcd, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(n))
}

// appendArray writes the head of an array of n values.
func appendArray(dst []byte, n int) []byte {
	switch {
	case n < 1<<4:
		return append(dst, 0x90|byte(n))
	case n < 1<<16:
		return append(dst, 0xdc, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 0xdd), uint32(n))
}

// appendMap writes the head of a map of n pairs, at most 15.
func appendMap(dst []byte, n int) []byte { return append(dst, 0x80|byte(n)) }

func appendText(dst []byte, s string) []byte {
	switch n := len(s); {
	case n < 1<<5:
		dst = append(dst, 0xa0|byte(n))
	case n < 1<<8:
		dst = append(dst, 0xd9, byte(n))
	case n < 1<<16:
		dst = append(dst, 0xda, byte(n>>8), byte(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xdb), uint32(n))
	}
	return append(dst, s...)
}

func appendTextOrNil(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, msgNil)
	}
	return appendText(dst, s)
}
