package gguf

import (
	"errors"
	"fmt"
)

// ErrNotGGUF is the cause when a file does not begin as a GGUF file does. The error says what the file looks like.
var ErrNotGGUF = errors.New("not a GGUF file")

// ErrMissing is the cause when a metadata key is absent.
var ErrMissing = errors.New("key is missing")

// FormatError says where in a file something is wrong.
type FormatError struct {
	Path   string
	Item   string // what was being read: "header", `key "general.name"`, `tensor "output.weight"`
	Offset int64  // in bytes from the start of the file
	Err    error
}

// Error gives the file, the item, the offset and the cause in one line.
func (e *FormatError) Error() string {
	return fmt.Sprintf("read %s: %s at byte %d: %v", e.Path, e.Item, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }
