//go:build !unix

package gguf

import (
	"io"
	"os"
)

// mapFile reads the file into memory where mapping is not to be had.
func mapFile(f *os.File, size int) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(f, data)
	return data, err
}

// unmapFile leaves the bytes to the garbage collector.
func unmapFile([]byte) error { return nil }
