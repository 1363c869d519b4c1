//go:build unix

package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes the lock of a file, which it makes and leaves. While another process or goroutine holds it, lock says so
// once by calling waiting, and looks again until the context ends. The system frees the lock of a process that dies.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil // closing frees the lock
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// checkSpace refuses to begin what cannot fit: need more bytes in the file system of dir.
func checkSpace(dir string, need int64) error {
	var s unix.Statfs_t
	if need <= 0 || unix.Statfs(dir, &s) != nil {
		return nil // not known: writing will tell
	}
	if free := uint64(s.Bavail) * uint64(s.Bsize); free < uint64(need) {
		return &localError{fmt.Errorf("%d MB more are needed, but %s has only %d MB free; set QUIRE_HOME to a larger disk",
			need/1e6+1, dir, free/1e6)}
	}
	return nil
}
