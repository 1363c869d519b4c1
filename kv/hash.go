package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Hash names the content of a full block and of everything before it.
type Hash [sha256.Size]byte

// String returns the first eight bytes in hexadecimal: enough to tell blocks apart in a transcript.
func (h Hash) String() string { return hex.EncodeToString(h[:8]) }

// Wire returns the last eight bytes as a number, big-endian: what vLLM's KV events call the block.
func (h *Hash) Wire() uint64 { return binary.BigEndian.Uint64(h[len(h)-8:]) }

// RootHash returns the parent of first blocks: sha256(CBOR(seed)), seed as a text string. vLLM's NONE_HASH under
// PYTHONHASHSEED=seed. Replicas that share a store must agree on the seed.
func RootHash(seed string) Hash {
	return sha256.Sum256(appendText(nil, seed))
}

// Chain hashes the full blocks of one request: H(block) = sha256(CBOR([parent, tokens, extra])). extra is null, or the
// list of the adapter's name (every block) and the cache salt (first block only). The zero value hashes nothing; set
// the fields, then call Extend whenever tokens were added.
type Chain struct {
	LoRA   string // adapter name, empty for none
	Salt   string // cache salt, empty for none: requests with different salts share no block
	Hashes []Hash // [blockCount] of the full blocks, in order
}

// Hasher is the scratch space for hashing; the zero value with a Root is ready. It belongs to one caller.
type Hasher struct {
	Root Hash
	buf  []byte
}

// Extend hashes the blocks of tokens that are full and not yet in the chain.
func (c *Chain) Extend(h *Hasher, tokens []int32, blockSize int) {
	for n := len(c.Hashes); (n+1)*blockSize <= len(tokens); n++ {
		parent := &h.Root
		if n > 0 {
			parent = &c.Hashes[n-1]
		}
		salt := ""
		if n == 0 {
			salt = c.Salt
		}
		h.buf = appendBlock(h.buf[:0], parent, tokens[n*blockSize:(n+1)*blockSize], c.LoRA, salt)
		c.Hashes = append(c.Hashes, sha256.Sum256(h.buf))
	}
}

// CBOR major types and simple values, RFC 8949 §3.
const (
	cborUint  = 0 << 5
	cborBytes = 2 << 5
	cborText  = 3 << 5
	cborArray = 4 << 5
	cborNull  = 0xf6
)

// appendBlock appends the canonical CBOR of [parent, tokens, extra].
func appendBlock(dst []byte, parent *Hash, tokens []int32, lora, salt string) []byte {
	dst = append(dst, cborArray|3)
	dst = appendHead(dst, cborBytes, uint32(len(parent)))
	dst = append(dst, parent[:]...)
	dst = appendHead(dst, cborArray, uint32(len(tokens)))
	for _, t := range tokens {
		dst = appendHead(dst, cborUint, uint32(t))
	}
	switch {
	case lora == "" && salt == "":
		return append(dst, cborNull)
	case salt == "":
		return appendText(append(dst, cborArray|1), lora)
	case lora == "":
		return appendText(append(dst, cborArray|1), salt)
	}
	return appendText(appendText(append(dst, cborArray|2), lora), salt)
}

func appendText(dst []byte, s string) []byte {
	return append(appendHead(dst, cborText, uint32(len(s))), s...)
}

// appendHead appends a type and its argument in the shortest form (RFC 8949 §4.2.1).
func appendHead(dst []byte, major byte, n uint32) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n < 1<<8:
		return append(dst, major|24, byte(n))
	case n < 1<<16:
		return append(dst, major|25, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, major|26), n)
}
