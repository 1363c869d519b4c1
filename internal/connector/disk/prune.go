package disk

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quire-ai/quire/internal/connector/chunk"
)

// Folder is the name of a model's folder below a root that several models share.
func Folder(f chunk.Fingerprint) string { return hex.EncodeToString(f[:16]) }

// folder is a store's folder below a root.
type folder struct {
	path  string
	bytes int64
	used  time.Time // when its index was written last
}

// Bytes returns the space that a store's folder takes; one that is not there takes none.
func Bytes(dir string) int64 {
	f, _ := measure(dir)
	return f.bytes
}

// measure looks at a folder and tells whether it is a store's.
func measure(dir string) (folder, bool) {
	f := folder{path: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return f, false
	}
	ours := false
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		f.bytes += info.Size()
		if e.Name() == logName {
			ours, f.used = true, info.ModTime()
		}
	}
	return f, ours
}

// Prune removes the folders of models other than keep, used longest ago first, until they take at most so many bytes.
// Folders that a process uses stay, and so does everything that is not a store's.
func Prune(root, keep string, most int64) error {
	entries, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("prune disk tiers: %w", err)
	}
	var others []folder
	total := int64(0)
	for _, e := range entries {
		id, err := hex.DecodeString(e.Name())
		if err != nil || len(id) != 16 || e.Name() == keep || !e.IsDir() {
			continue
		}
		if f, ours := measure(filepath.Join(root, e.Name())); ours {
			others = append(others, f)
			total += f.bytes
		}
	}
	slices.SortFunc(others, func(a, b folder) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path)) })
	for _, f := range others {
		if total <= most {
			break
		}
		lock, err := OS().Lock(filepath.Join(f.path, lockName))
		if err != nil {
			continue
		}
		err = errors.Join(os.RemoveAll(f.path), lock.Close())
		if err != nil {
			return fmt.Errorf("prune disk tiers: %w", err)
		}
		total -= f.bytes
	}
	return nil
}
