package disk

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// OS returns the real operating system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) MkdirAll(path string) error   { return os.MkdirAll(path, 0o700) }
func (osFS) Rename(from, to string) error { return os.Rename(from, to) }
func (osFS) Remove(path string) error     { return os.Remove(path) }

func (osFS) Names(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

func (osFS) Open(path string, direct bool) (File, error) {
	const flags = os.O_RDWR | os.O_CREATE
	if direct {
		f, err := os.OpenFile(path, flags|unix.O_DIRECT, 0o600)
		if err == nil || !errors.Is(err, unix.EINVAL) { // tmpfs and others know no O_DIRECT
			return osFile{f}, err
		}
	}
	f, err := os.OpenFile(path, flags, 0o600)
	return osFile{f}, err
}

func (osFS) Lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder := make([]byte, 20)
		n, _ := f.ReadAt(holder, 0) // for the message only
		err = fmt.Errorf("%w, pid %s", ErrInUse, holder[:n])
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "%d", os.Getpid()) // likewise
	}
	return f, nil
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Allocate(size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.Truncate(size)
	}
	if err != nil {
		return fmt.Errorf("allocate %d bytes: %w", size, err)
	}
	return nil
}

// FreeBytes returns the space that an ordinary user may still take on the disk of a folder.
func FreeBytes(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}
