package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// magic is the first four bytes of a GGUF file.
const magic = "GGUF"

// sniff checks the magic. Otherwise it says what the file is instead, for those mistakes which people make.
func sniff(data []byte) error {
	if bytes.HasPrefix(data, []byte(magic)) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNotGGUF, describe(data))
}

// describe says what a file that is no GGUF file looks like.
func describe(data []byte) string {
	for _, known := range []struct{ prefix, meaning string }{
		{"version https://git-lfs", "it is a Git LFS pointer; the file itself was not fetched (git lfs pull)"},
		{"PK\x03\x04", "it is a zip archive, perhaps a PyTorch checkpoint or a wheel"},
		{"<", "it is a web page or XML; the download gave an error page"},
		{"{", "it is JSON"},
		{"FUGG", "its magic is byte-swapped"},
		{"tjgg", "it is a GGJT file of llama.cpp before GGUF; convert the model again"},
		{"lmgg", "it is a GGML file of llama.cpp before GGUF; convert the model again"},
		{"fmgg", "it is a GGMF file of llama.cpp before GGUF; convert the model again"},
	} {
		if bytes.HasPrefix(data, []byte(known.prefix)) {
			return known.meaning
		}
	}
	switch {
	case len(data) == 0:
		return "it is empty"
	case len(data) < len(magic):
		return fmt.Sprintf("it has only %d bytes", len(data))
	case len(data) > 8 && data[8] == '{' && binary.LittleEndian.Uint64(data) <= uint64(len(data)):
		return "it is a safetensors file; convert it to GGUF"
	}
	return fmt.Sprintf("it begins with %q, want %q", data[:len(magic)], magic)
}

// checkVersion refuses the versions that are laid out in another way.
func checkVersion(v uint32) error {
	switch swapped := bits.ReverseBytes32(v); {
	case v == 2 || v == 3:
		return nil
	case v == 1:
		return fmt.Errorf("GGUF version 1 is not supported, versions 2 and 3 are; convert the model again")
	case swapped >= 1 && swapped < 1<<16:
		return fmt.Errorf("big-endian file (GGUF version %d): only little-endian files are supported", swapped)
	}
	return fmt.Errorf("GGUF version %d is not supported, versions 2 and 3 are", v)
}
