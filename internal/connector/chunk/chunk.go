// Package chunk is the form in which KV leaves the process: some blocks behind a header that says what they are.
//
//	offset  bytes
//	     0   3968  zeros, so that the payload is page-aligned and a page holds the header
//	  3968    128  header
//	  4096      n  payload: the blocks, each as the pool holds it
//
// The header, little-endian:
//
//	 0   8  magic "quirekv" and the version of this layout, 1
//	 8   4  blocks
//	12   4  bytes of a block
//	16  32  fingerprint of everything that decides what the bytes mean (model, weights, layout, number format, block size)
//	48  32  hash of the last block, which covers all tokens before it
//	80   8  XXH3 of the payload
//	88  32  zeros
//	120  8  XXH3 of the 120 bytes before
//
// A reader that checks magic, fingerprint, hash, lengths and both sums cannot be given anything but what was stored under
// that hash for that model.
package chunk

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/quire-ai/quire/kv"
)

// Sizes of the parts before the payload.
const (
	PageBytes   = 4096
	HeaderBytes = 128

	headerAt = PageBytes - HeaderBytes
	magic    = "quirekv\x01"
)

// ErrMissing says that a store does not have a chunk: a miss, not a fault.
var ErrMissing = errors.New("no such chunk")

// Fingerprint names what decides the meaning of a block's bytes, other than its tokens.
type Fingerprint [32]byte

// Format is the shape of the chunks of one store.
type Format struct {
	Fingerprint Fingerprint
	Blocks      int // in a chunk
	BlockBytes  int
}

// Of returns the format of chunks of n blocks.
func (f Format) Of(n int) Format {
	f.Blocks = n
	return f
}

// PayloadBytes is the size of a chunk's blocks.
func (f Format) PayloadBytes() int { return f.Blocks * f.BlockBytes }

// BufferBytes is the size of a buffer for a chunk: header page and payload, rounded up to pages.
func (f Format) BufferBytes() int {
	return (PageBytes + f.PayloadBytes() + PageBytes - 1) / PageBytes * PageBytes
}

// Payload is the part of a buffer that holds the blocks.
func (f Format) Payload(buffer []byte) []byte { return buffer[PageBytes:][:f.PayloadBytes()] }

// Value is the part of a buffer that means something: header and payload, without padding.
func (f Format) Value(buffer []byte) []byte {
	return buffer[headerAt:][:HeaderBytes+f.PayloadBytes()]
}

// Seal writes the header of a buffer whose payload is complete.
func (f Format) Seal(buffer []byte, h *kv.Hash) {
	clear(buffer[:PageBytes])
	b := buffer[headerAt:PageBytes]
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], uint32(f.Blocks))
	binary.LittleEndian.PutUint32(b[12:], uint32(f.BlockBytes))
	copy(b[16:], f.Fingerprint[:])
	copy(b[48:], h[:])
	binary.LittleEndian.PutUint64(b[80:], xxh3.Hash(f.Payload(buffer)))
	binary.LittleEndian.PutUint64(b[120:], xxh3.Hash(b[:120]))
}

// Check returns an error unless the buffer holds the chunk of the hash, whole.
func (f Format) Check(buffer []byte, h *kv.Hash) error {
	got, err := f.Identify(buffer[:PageBytes])
	if err != nil {
		return err
	}
	if got != *h {
		return fmt.Errorf("chunk of %x: holds %x", h[:8], got[:8])
	}
	sum := binary.LittleEndian.Uint64(buffer[headerAt+80:])
	if s := xxh3.Hash(f.Payload(buffer)); s != sum {
		return fmt.Errorf("chunk of %x: payload has checksum %x, want %x", h[:8], s, sum)
	}
	return nil
}

// Identify reads the hash from a header page. It returns an error if the page is not the header of a chunk of this format.
func (f Format) Identify(page []byte) (kv.Hash, error) {
	b := page[headerAt:PageBytes]
	switch {
	case string(b[:8]) != magic:
		return kv.Hash{}, errors.New("chunk header: not one of this version")
	case binary.LittleEndian.Uint64(b[120:]) != xxh3.Hash(b[:120]):
		return kv.Hash{}, errors.New("chunk header: checksum does not match")
	case Fingerprint(b[16:48]) != f.Fingerprint:
		return kv.Hash{}, errors.New("chunk header: of another model or layout")
	}
	blocks, size := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	if int(blocks) != f.Blocks || int(size) != f.BlockBytes {
		return kv.Hash{}, fmt.Errorf("chunk header: %d blocks of %d bytes, want %d of %d", blocks, size, f.Blocks, f.BlockBytes)
	}
	return kv.Hash(b[48:80]), nil
}
