//go:build unix

package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// freeDisk is how many bytes can be written to the disk that holds dir; 0 when that cannot be told.
func freeDisk(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0
	}
	return int64(st.Bavail) * int64(st.Bsize)
}

// writable reports why files cannot be made in dir, which need not exist yet.
func writable(dir string) error {
	dir = existing(dir)
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return &os.PathError{Op: "write", Path: dir, Err: unix.ENOTDIR}
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return &os.PathError{Op: "write", Path: dir, Err: err}
	}
	return nil
}

// existing is dir or the nearest folder above it that exists.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
