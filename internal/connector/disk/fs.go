package disk

import (
	"errors"
	"io"
)

// ErrInUse refuses a folder that another process uses.
var ErrInUse = errors.New("folder is in use by another process")

// FS is what the store needs of the operating system. Tests put faults into it.
type FS interface {
	// MkdirAll makes a folder and those above it.
	MkdirAll(path string) error
	// Names lists a folder.
	Names(path string) ([]string, error)
	// Open opens a file for reading and writing, creating it if need be. With direct, reads and writes bypass the page cache
	// where the file system can; they are page-aligned.
	Open(path string, direct bool) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	// Lock takes the lock file for this process, or fails with ErrInUse.
	Lock(path string) (io.Closer, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size is the length in bytes.
	Size() (int64, error)
	// Allocate makes the file so long, with space on the disk behind it.
	Allocate(size int64) error
	// Sync waits until what was written is on the disk.
	Sync() error
}
