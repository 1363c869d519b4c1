package disk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/connector/disk"
	"github.com/quire-ai/quire/internal/cpu"
	"github.com/quire-ai/quire/kv"
)

var format = chunk.Format{Fingerprint: chunk.Fingerprint{5}, Blocks: 1, BlockBytes: 6000}

func hash(i int) *kv.Hash { return &kv.Hash{byte(i), 7} }

// buffers are page-aligned, as the chain's are.
type buffers struct {
	memory []byte
	out    []byte
	in     []byte
}

func newBuffers(t *testing.T) *buffers {
	t.Helper()
	n := format.BufferBytes()
	memory, err := cpu.Alloc(2 * n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cpu.Free(memory) })
	return &buffers{memory, memory[:n], memory[n:]}
}

func content(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i * 3)}, format.BlockBytes/2) }

func (b *buffers) write(s *disk.Store, i int) error {
	copy(format.Payload(b.out), content(i))
	format.Seal(b.out, hash(i))
	return s.Write(context.Background(), hash(i), b.out)
}

// read returns whether chunk i is there and right. A chunk that is there and wrong, but fails its check, is no error.
func (b *buffers) read(t *testing.T, s *disk.Store, i int) bool {
	t.Helper()
	if err := s.Read(context.Background(), hash(i), b.in); err != nil {
		return false
	}
	if err := format.Check(b.in, hash(i)); err != nil {
		return false
	}
	if !bytes.Equal(format.Payload(b.in), content(i)) {
		t.Fatalf("chunk %d passes its check and is wrong", i)
	}
	return true
}

func open(t *testing.T, dir string, slots int, fs disk.FS) *disk.Store {
	t.Helper()
	s, err := disk.Open(config(dir, slots, fs))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func config(dir string, slots int, fs disk.FS) disk.Config {
	n := int64(format.BufferBytes())
	return disk.Config{Dir: dir, SizeBytes: int64(slots) * n, Format: format, SlabBytes: 2 * n, FS: fs}
}

func closeStore(t *testing.T, s *disk.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestRestart: what was written is there after a restart, in the order of use; the one used longest ago goes first.
func TestRestart(t *testing.T) {
	dir, b := t.TempDir(), newBuffers(t)
	s := open(t, dir, 5, nil)
	for i := range 5 {
		if err := b.write(s, i); err != nil {
			t.Fatal(err)
		}
	}
	b.read(t, s, 0)
	closeStore(t, s)
	s = open(t, dir, 5, nil)
	defer closeStore(t, s)
	for i := 5; i < 7; i++ { // 1 and 2 go
		if err := b.write(s, i); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{true, false, false, true, true, true, true} {
		if got := b.read(t, s, i); got != want || s.Has(hash(i)) != want {
			t.Errorf("chunk %d: read %t, has %t, want %t", i, got, s.Has(hash(i)), want)
		}
	}
	if u := s.Usage(); u.Blocks != 5 || u.Evicted != 2 || u.Capacity != u.Bytes {
		t.Errorf("%+v, want five blocks, two evicted, full", u)
	}
}

// TestOneProcess: a second process on the folder is refused, by name, and gets it when the first has ended.
func TestOneProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 5, nil)
	_, err := disk.Open(config(dir, 5, nil))
	pid := fmt.Sprint("pid ", os.Getpid())
	if !errors.Is(err, disk.ErrInUse) || !strings.Contains(err.Error(), pid) || !strings.Contains(err.Error(), dir) {
		t.Errorf("the second gets %v, want an error that names folder and process", err)
	}
	closeStore(t, s)
	closeStore(t, open(t, dir, 5, nil))
}

// TestLostIndex: the chunks say themselves what they are.
func TestLostIndex(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"missing":  os.Remove,
		"empty":    func(path string) error { return os.Truncate(path, 0) },
		"no index": func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 500), 0o600) },
	} {
		dir, b := t.TempDir(), newBuffers(t)
		s := open(t, dir, 5, nil)
		for i := range 4 {
			if err := b.write(s, i); err != nil {
				t.Fatal(err)
			}
		}
		closeStore(t, s)
		if err := spoil(filepath.Join(dir, "index.log")); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, 5, nil)
		for i := range 4 {
			if !b.read(t, s, i) {
				t.Errorf("index %s: chunk %d is lost", name, i)
			}
		}
		closeStore(t, s)
	}
}

// TestDamage: a byte that changed on the disk is a miss, and Drop makes room.
func TestDamage(t *testing.T) {
	dir, b := t.TempDir(), newBuffers(t)
	s := open(t, dir, 2, nil)
	for i := range 2 {
		if err := b.write(s, i); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	path := filepath.Join(dir, "slab-0000.kv")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[chunk.PageBytes+100] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, 2, nil)
	defer closeStore(t, s)
	if b.read(t, s, 0) || !b.read(t, s, 1) {
		t.Error("want chunk 0 damaged and chunk 1 whole")
	}
	s.Drop(hash(0))
	s.Drop(hash(0))
	if err := b.write(s, 2); err != nil || s.Has(hash(0)) || !b.read(t, s, 1) || !b.read(t, s, 2) {
		t.Errorf("after the drop: %v, want chunk 2 in the place of 0", err)
	}
}

// TestOtherModel: a folder that belongs to another model's chunks gives nothing.
func TestOtherModel(t *testing.T) {
	dir, b := t.TempDir(), newBuffers(t)
	s := open(t, dir, 4, nil)
	if err := b.write(s, 0); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	c := config(dir, 4, nil)
	c.Format.Fingerprint[0]++
	s, err := disk.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	if s.Has(hash(0)) {
		t.Error("another model's chunk is in the index")
	}
}

// TestShrink: a smaller store gives the space back and keeps what fits.
func TestShrink(t *testing.T) {
	dir, b := t.TempDir(), newBuffers(t)
	s := open(t, dir, 8, nil)
	for i := range 8 {
		if err := b.write(s, i); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	s = open(t, dir, 2, nil)
	defer closeStore(t, s)
	slabs, err := filepath.Glob(filepath.Join(dir, "slab-*"))
	if err != nil || len(slabs) != 1 || s.Usage().Blocks != 2 {
		t.Errorf("slabs %v, %+v, %v; want one slab with two chunks", slabs, s.Usage(), err)
	}
}

// workload writes, reads, drops and closes, whatever goes wrong.
func workload(t *testing.T, dir string, fs disk.FS, b *buffers) {
	s, err := disk.Open(config(dir, 3, fs))
	if err != nil {
		return
	}
	for i := range 6 {
		_ = b.write(s, i)
		b.read(t, s, i-1)
	}
	s.Drop(hash(5))
	_ = b.write(s, 6)
	b.read(t, s, 4)
	_ = s.Close()
}

// TestFaultAtEverySyscall: at each call of the operating system in a workload the call fails, is cut short, or the process
// is killed before, in the midst of or after it. Whatever the store then says it has, it has; and it goes on to work.
func TestFaultAtEverySyscall(t *testing.T) {
	b := newBuffers(t)
	clean := &faultFS{FS: disk.OS(), kind: none}
	workload(t, t.TempDir(), clean, b)
	if clean.calls < 40 {
		t.Fatalf("the workload makes %d calls", clean.calls)
	}
	every := 1
	if testing.Short() {
		every = 6
	}
	for k, kind := range []fault{eio, enospc, shortWrite, killed, killedHalf, crashedFile} {
		kept := 0
		for n := k % every; n < clean.calls; n += every {
			dir := filepath.Join(t.TempDir(), "kv")
			fs := &faultFS{FS: disk.OS(), kind: kind, left: n}
			workload(t, dir, fs, b)
			fs.release()
			s, err := disk.Open(config(dir, 3, nil))
			if err != nil {
				t.Fatalf("%s at call %d: the folder cannot be opened again: %v", kind, n, err)
			}
			for i := range 7 {
				if has := s.Has(hash(i)); has != b.read(t, s, i) {
					t.Errorf("%s at call %d: chunk %d is in the index and cannot be read", kind, n, i)
				} else if has {
					kept++
				}
			}
			for i := 10; i < 14; i++ {
				if err := b.write(s, i); err != nil || !b.read(t, s, i) {
					t.Errorf("%s at call %d: afterwards chunk %d cannot be written: %v", kind, n, i, err)
				}
			}
			closeStore(t, s)
		}
		t.Logf("%s at one in %d of %d calls: %d chunks kept", kind, every, clean.calls, kept)
	}
}

// TestManyChunks: the log stays short, and a restart finds the latest.
func TestManyChunks(t *testing.T) {
	dir, b := t.TempDir(), newBuffers(t)
	s := open(t, dir, 8, nil)
	for i := range 3000 {
		copy(format.Payload(b.out), content(i))
		h := kv.Hash{byte(i), byte(i >> 8)}
		format.Seal(b.out, &h)
		if err := s.Write(context.Background(), &h, b.out); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "index.log"))
	if err != nil || info.Size() > 48*1100 {
		t.Errorf("the log is %d bytes long after 3000 chunks, %v", info.Size(), err)
	}
	closeStore(t, s)
	s = open(t, dir, 8, nil)
	defer closeStore(t, s)
	for i := 2992; i < 3000; i++ {
		if !s.Has(&kv.Hash{byte(i), byte(i >> 8)}) {
			t.Errorf("chunk %d is lost", i)
		}
	}
}

// BenchmarkOpen is a restart with 100,000 chunks of SmolLM2-135M, 36 GB: the index only, the slabs are sparse.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	c := disk.Config{Dir: dir, Format: chunk.Format{Blocks: 1, BlockBytes: 4096}, FS: sparse{disk.OS()}}
	c.SizeBytes = 100_000 * int64(c.Format.BufferBytes())
	s, err := disk.Open(c)
	if err != nil {
		b.Fatal(err)
	}
	buffer, err := cpu.Alloc(c.Format.BufferBytes())
	if err != nil {
		b.Fatal(err)
	}
	for i := range 100_000 {
		h := kv.Hash{byte(i), byte(i >> 8), byte(i >> 16)}
		if err := s.Write(context.Background(), &h, buffer); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := disk.Open(c)
		if err != nil {
			b.Fatal(err)
		}
		if n := s.Usage().Blocks; n != 100_000 {
			b.Fatalf("%d chunks", n)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// sparse is a file system whose slabs keep nothing.
type sparse struct{ disk.FS }

func (s sparse) Open(path string, direct bool) (disk.File, error) {
	f, err := s.FS.Open(path, false)
	if direct {
		f = empty{f}
	}
	return f, err
}

type empty struct{ disk.File }

func (empty) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (empty) Allocate(int64) error                   { return nil }

// TestPrune: of other models' folders the ones used longest ago go; what is in use, or not ours, stays.
func TestPrune(t *testing.T) {
	root := t.TempDir()
	names := map[string]string{}
	for i, name := range []string{"old", "used", "new", "mine"} {
		f := format
		f.Fingerprint[0] = byte(i)
		names[name] = filepath.Join(root, disk.Folder(f.Fingerprint))
		c := config(names[name], 2, nil)
		c.Format = f
		s, err := disk.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := newBuffers(t).write(s, 1); err != nil {
			t.Fatal(err)
		}
		if name == "used" {
			defer closeStore(t, s)
		} else {
			closeStore(t, s)
		}
	}
	foreign := filepath.Join(root, strings.Repeat("ab", 16))
	if err := os.MkdirAll(filepath.Join(foreign, "photos"), 0o700); err != nil {
		t.Fatal(err)
	}
	size := disk.Bytes(names["old"])
	if err := disk.Prune(root, filepath.Base(names["mine"]), 2*size+size/2); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{names["old"]: false, names["used"]: true, names["new"]: true, names["mine"]: true, foreign: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", path, err == nil, want)
		}
	}
	if err := disk.Prune(filepath.Join(root, "nothing"), "", 0); err != nil {
		t.Error(err)
	}
}
