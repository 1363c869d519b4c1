package disk_test

import (
	"errors"
	"io"
	"sync"
	"syscall"

	"github.com/quire-ai/quire/internal/connector/disk"
)

// faultFS is the real file system until its n-th call, which goes wrong.
type faultFS struct {
	disk.FS
	kind fault

	mu    sync.Mutex
	left  int // calls before the fault
	calls int
	fired bool
	dead  bool // the process was killed: nothing has an effect any more
	locks []io.Closer
}

// fault is what happens at the call.
type fault string

const (
	none        fault = "none"
	eio         fault = "EIO"
	enospc      fault = "ENOSPC"
	shortWrite  fault = "short write"
	killed      fault = "kill"
	killedHalf  fault = "kill amid a write"
	crashedFile fault = "kill after a call"
)

var errKilled = errors.New("killed")

// hit counts a call and says what becomes of it.
func (f *faultFS) hit() (fault, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.dead {
		return none, errKilled
	}
	if f.kind == none || f.fired {
		return none, nil
	}
	if f.left--; f.left >= 0 {
		return none, nil
	}
	f.fired = true
	switch f.kind {
	case eio:
		return f.kind, syscall.EIO
	case enospc:
		return f.kind, syscall.ENOSPC
	case killed:
		f.dead = true
		return f.kind, errKilled
	case killedHalf, crashedFile:
		f.dead = true
	}
	return f.kind, nil
}

// after is what a call that had its effect returns.
func after(k fault, err error) error {
	if k == crashedFile || k == killedHalf {
		return errKilled
	}
	return err
}

// release is what the kernel does for a process that ended.
func (f *faultFS) release() {
	for _, l := range f.locks {
		_ = l.Close()
	}
}

func (f *faultFS) MkdirAll(path string) error {
	k, err := f.hit()
	if err != nil {
		return err
	}
	return after(k, f.FS.MkdirAll(path))
}

func (f *faultFS) Names(path string) ([]string, error) {
	k, err := f.hit()
	if err != nil {
		return nil, err
	}
	names, err := f.FS.Names(path)
	return names, after(k, err)
}

func (f *faultFS) Rename(from, to string) error {
	k, err := f.hit()
	if err != nil {
		return err
	}
	return after(k, f.FS.Rename(from, to))
}

func (f *faultFS) Remove(path string) error {
	k, err := f.hit()
	if err != nil {
		return err
	}
	return after(k, f.FS.Remove(path))
}

func (f *faultFS) Lock(path string) (io.Closer, error) {
	k, err := f.hit()
	if err != nil {
		return nil, err
	}
	l, err := f.FS.Lock(path)
	if err == nil {
		f.locks = append(f.locks, l)
		err = after(k, nil)
	}
	return l, err
}

func (f *faultFS) Open(path string, direct bool) (disk.File, error) {
	k, err := f.hit()
	if err != nil {
		return nil, err
	}
	file, err := f.FS.Open(path, direct)
	if err != nil {
		return nil, err
	}
	return &faultFile{file, f}, after(k, nil)
}

type faultFile struct {
	disk.File
	fs *faultFS
}

func (f *faultFile) ReadAt(b []byte, at int64) (int, error) {
	k, err := f.fs.hit()
	if err != nil {
		return 0, err
	}
	n, err := f.File.ReadAt(b, at)
	return n, after(k, err)
}

func (f *faultFile) WriteAt(b []byte, at int64) (int, error) {
	k, err := f.fs.hit()
	if err != nil {
		return 0, err
	}
	if k == shortWrite || k == killedHalf {
		half := len(b) / 2
		if len(b)%4096 == 0 {
			half = half / 4096 * 4096 // direct
		}
		n, err := f.File.WriteAt(b[:half], at)
		if k == shortWrite && err == nil {
			err = io.ErrShortWrite
		}
		return n, after(k, err)
	}
	n, err := f.File.WriteAt(b, at)
	return n, after(k, err)
}

func (f *faultFile) Size() (int64, error) {
	k, err := f.fs.hit()
	if err != nil {
		return 0, err
	}
	n, err := f.File.Size()
	return n, after(k, err)
}

func (f *faultFile) Allocate(size int64) error {
	k, err := f.fs.hit()
	if err != nil {
		return err
	}
	return after(k, f.File.Allocate(size))
}

func (f *faultFile) Sync() error {
	k, err := f.fs.hit()
	if err != nil {
		return err
	}
	return after(k, f.File.Sync())
}

// Close always closes: a killed process keeps no files.
func (f *faultFile) Close() error {
	k, err := f.fs.hit()
	return errors.Join(err, f.File.Close(), after(k, nil))
}
