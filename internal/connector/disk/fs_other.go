//go:build !linux

package disk

import (
	"errors"
	"fmt"
	"io"
)

// OS returns an operating system on which no folder can be opened: locking and preallocation are written for Linux.
func OS() FS { return unsupported{} }

type unsupported struct{}

var errUnsupported = fmt.Errorf("the disk tier needs Linux: %w", errors.ErrUnsupported)

func (unsupported) MkdirAll(string) error           { return errUnsupported }
func (unsupported) Names(string) ([]string, error)  { return nil, errUnsupported }
func (unsupported) Open(string, bool) (File, error) { return nil, errUnsupported }
func (unsupported) Rename(string, string) error     { return errUnsupported }
func (unsupported) Remove(string) error             { return errUnsupported }
func (unsupported) Lock(string) (io.Closer, error)  { return nil, errUnsupported }

// FreeBytes is not known here.
func FreeBytes(string) (int64, error) { return 0, errUnsupported }
