// Package gguf reads and writes GGUF files, the model format of llama.cpp and its family: metadata, a table of
// tensors, and the tensors' bytes. It reads versions 2 and 3, little-endian. All numbers below are little-endian too:
//
//	"GGUF"  version u32  tensor count u64  key count u64
//	key count ×     { key string  kind u32  value }
//	tensor count ×  { name string  dimensions u32  dimension u64 …  type u32  offset u64 }
//	padding to general.alignment (32 when the key is absent)
//	tensor bytes; each tensor begins at its offset from here, a multiple of the alignment
//
//	string = length u64, bytes            array = kind u32, count u64, elements
//
// Open maps the file into memory, checks all of it but the weights themselves, and copies the metadata. So metadata
// and every string from it live as long as the caller likes, while a tensor's Data is a view of the mapping which
// ends with Close. Opening costs milliseconds whatever the size of the weights; arrays such as the vocabulary are
// decoded when they are asked for.
//
// A file is untrusted input. Every length in it is compared with the bytes that are left before anything is
// allocated; counts, products and offsets cannot overflow; keys and tensor names are unique; tensors lie inside the
// file and do not overlap. An error names the file, the key or tensor, and the byte where it was found. A tensor of a
// type that this package does not know is listed without size and data, so that a file can be inspected even
// when it cannot be used.
//
// The one thing that cannot be checked is the file changing underneath: if another process truncates it while it is
// open, reading the lost part of a tensor kills the process (SIGBUS). Replace model files by rename, as quire pull does.
package gguf
