package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/kv"
)

// sentinel is the slot that stands for both ends of the queue; it holds nothing.
const sentinel = 0

// slabBytes is about the size of a slab.
const slabBytes = 256 << 20

// lockName is the file that the process using a folder holds.
const lockName = "lock"

// Config is the shape of a store.
type Config struct {
	Dir       string // made if need be; one model's only
	SizeBytes int64  // most bytes of chunks
	Format    chunk.Format
	// SlabBytes is about the size of a slab file; 0 means 256 MiB.
	SlabBytes int64
	// FS is nil for the real one.
	FS FS
}

// Store keeps chunks in a folder. Its methods may be called concurrently.
type Store struct {
	dir       string
	fs        FS
	format    chunk.Format
	slotBytes int64
	perSlab   int
	lock      io.Closer
	log       indexLog
	growing   sync.Mutex // one slab at a time; taken before mu

	mu      sync.Mutex // guards what follows; never held while the disk works, since Has must not wait
	index   map[kv.Hash]int32
	slots   []slot // [capacity + 1], 0 is the sentinel: next is used longest ago, prev latest
	slabs   []File
	used    int     // slots 1 … used were given out
	vacant  []int32 // of those, the ones that hold nothing
	limit   int     // slots there is space for: less than capacity when the disk is full
	evicted uint64
}

type slot struct {
	hash       kv.Hash
	prev, next int32
	pins       int32
}

// Open opens a folder, for this process alone, and recovers what is in it.
func Open(cfg Config) (*Store, error) {
	s := &Store{dir: cfg.Dir, fs: cfg.FS, format: cfg.Format, slotBytes: int64(cfg.Format.BufferBytes()), index: map[kv.Hash]int32{}}
	if s.fs == nil {
		s.fs = OS()
	}
	if cfg.SlabBytes == 0 {
		cfg.SlabBytes = slabBytes
	}
	s.limit = int(cfg.SizeBytes / s.slotBytes)
	if s.limit < 1 {
		return nil, fmt.Errorf("disk tier of %d bytes holds no chunk of %d", cfg.SizeBytes, s.slotBytes)
	}
	s.perSlab = int(max(cfg.SlabBytes/s.slotBytes, 1))
	s.slots = make([]slot, s.limit+1)
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("disk tier %s: %w", cfg.Dir, err)
	}
	return s, nil
}

func (s *Store) open() error {
	if err := s.fs.MkdirAll(s.dir); err != nil {
		return err
	}
	var err error
	if s.lock, err = s.fs.Lock(filepath.Join(s.dir, lockName)); err != nil {
		return err
	}
	err = s.openSlabs()
	if err == nil {
		err = s.recover()
	}
	if err == nil {
		err = s.rewriteLog(true)
	}
	if err != nil {
		return errors.Join(err, s.closeFiles())
	}
	return nil
}

func slabName(i int) string { return fmt.Sprintf("slab-%04d.kv", i) }

// openSlabs opens the slabs that are there and removes those beyond the store's size.
func (s *Store) openSlabs() error {
	names, err := s.fs.Names(s.dir)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	most := (s.limit + s.perSlab - 1) / s.perSlab
	for len(s.slabs) < most && there[slabName(len(s.slabs))] {
		delete(there, slabName(len(s.slabs)))
		f, err := s.fs.Open(filepath.Join(s.dir, slabName(len(s.slabs))), true)
		if err != nil {
			return err
		}
		s.slabs = append(s.slabs, f)
	}
	for name := range there {
		if strings.HasPrefix(name, "slab-") {
			if err := s.fs.Remove(filepath.Join(s.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// recover fills the index from the log or, if that is lost, from the chunks themselves.
func (s *Store) recover() error {
	err := s.readLog(s.replay)
	if errors.Is(err, errNoIndex) {
		s.scan()
	} else if err != nil {
		return err
	}
	s.used = min(len(s.slabs)*s.perSlab, s.limit)
	for i := int32(s.used); i > 0; i-- {
		if x := &s.slots[i]; s.index[x.hash] != i {
			s.vacant = append(s.vacant, i)
		}
	}
	return nil
}

// replay takes in a record of the log.
func (s *Store) replay(r record) {
	if r.slot < 1 || int(r.slot) > min(s.limit, len(s.slabs)*s.perSlab) {
		return // of a larger store
	}
	if r.op == opHolds || s.slots[r.slot].hash == r.hash {
		s.vacate(r.slot)
	}
	if r.op == opHolds {
		s.enter(r.slot, &r.hash)
	}
}

// scan reads the headers of all slots.
func (s *Store) scan() {
	page := alignedPage()
	for i := int32(1); int(i) <= min(s.limit, len(s.slabs)*s.perSlab); i++ {
		file, at := s.place(i)
		if _, err := file.ReadAt(page, at); err != nil {
			continue
		}
		if h, err := s.format.Identify(page); err == nil {
			s.enter(i, &h)
		}
	}
}

// alignedPage returns a page that direct reads accept.
func alignedPage() []byte {
	b := make([]byte, 2*chunk.PageBytes)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % chunk.PageBytes)
	return b[off:][:chunk.PageBytes:chunk.PageBytes]
}

// enter makes a slot hold a chunk, in the index. If another slot holds it too, that one wins.
func (s *Store) enter(i int32, h *kv.Hash) {
	if _, ok := s.index[*h]; ok {
		return
	}
	s.slots[i].hash = *h
	s.index[*h] = i
	s.pushNewest(i)
}

// vacate makes a slot that nobody reads hold nothing, in the index.
func (s *Store) vacate(i int32) bool {
	if x := &s.slots[i]; s.index[x.hash] == i {
		delete(s.index, x.hash)
		s.unlink(i)
		return true
	}
	return false
}

// place returns the file and offset of a slot.
func (s *Store) place(i int32) (File, int64) {
	n := int(i) - 1
	return s.slabs[n/s.perSlab], int64(n%s.perSlab) * s.slotBytes
}

// Name implements connector.Store.
func (s *Store) Name() string { return "disk" }

// ChunkBlocks implements connector.Store.
func (s *Store) ChunkBlocks() int { return s.format.Blocks }

// Has tells whether the index has the chunk.
func (s *Store) Has(h *kv.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.index[*h]
	return ok
}

// Read reads a chunk into a page-aligned buffer. The caller checks it.
func (s *Store) Read(_ context.Context, h *kv.Hash, buffer []byte) error {
	s.mu.Lock()
	i, ok := s.index[*h]
	if !ok {
		s.mu.Unlock()
		return chunk.ErrMissing
	}
	if s.slots[i].pins == 0 {
		s.unlink(i)
	}
	s.slots[i].pins++
	file, at := s.place(i)
	s.mu.Unlock()
	n, err := file.ReadAt(buffer[:s.slotBytes], at)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots[i].pins--; s.slots[i].pins == 0 {
		if s.index[*h] == i {
			s.pushNewest(i)
		} else {
			s.vacant = append(s.vacant, i) // dropped meanwhile
		}
	}
	if err != nil {
		return fmt.Errorf("read slot %d: %d of %d bytes: %w", i, n, s.slotBytes, err)
	}
	return nil
}

// Write keeps a chunk.
func (s *Store) Write(_ context.Context, h *kv.Hash, buffer []byte) error {
	i, file, at, err := s.reserve(h)
	if err != nil || i == sentinel {
		return err
	}
	n, err := file.WriteAt(buffer[:s.slotBytes], at)
	if err == nil && n == int(s.slotBytes) {
		err = s.logged(record{slot: i, op: opHolds, hash: *h})
	} else {
		err = fmt.Errorf("write slot %d: %d of %d bytes: %w", i, n, s.slotBytes, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.index[*h]; ok || err != nil { // another writer may have been faster
		s.vacant = append(s.vacant, i)
		return err
	}
	s.enter(i, h)
	return nil
}

// reserve finds a slot for a chunk, none if the chunk is there. The slot is in no list until the caller puts it into one.
func (s *Store) reserve(h *kv.Hash) (i int32, file File, at int64, err error) {
	i, old, err := s.take(h)
	if err != nil || i == sentinel {
		return sentinel, nil, 0, err
	}
	if old != (kv.Hash{}) {
		if err := s.logged(record{slot: i, op: opEmpty, hash: old}); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.enter(i, &old) // nothing was overwritten
			return sentinel, nil, 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	file, at = s.place(i)
	return i, file, at, nil
}

// take finds the slot, and says what it held until now.
func (s *Store) take(h *kv.Hash) (i int32, old kv.Hash, err error) {
	s.grow()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.index[*h]; ok {
		return sentinel, old, nil
	}
	if n := len(s.vacant); n > 0 {
		i = s.vacant[n-1]
		s.vacant = s.vacant[:n-1]
		return i, old, nil
	}
	if i = s.slots[sentinel].next; i == sentinel {
		return sentinel, old, fmt.Errorf("write chunk: none of %d slots is free", s.used)
	}
	old = s.slots[i].hash
	s.vacate(i)
	s.evicted++
	return i, old, nil
}

// grow adds a slab if all slots are taken. If there is no space for one, the store keeps the size it has.
func (s *Store) grow() {
	s.growing.Lock()
	defer s.growing.Unlock()
	s.mu.Lock()
	n := min(s.perSlab, s.limit-s.used)
	path := filepath.Join(s.dir, slabName(len(s.slabs)))
	full := len(s.vacant) == 0
	s.mu.Unlock()
	if n == 0 || !full {
		return
	}
	f, err := s.fs.Open(path, true)
	if err == nil {
		if err = f.Allocate(int64(n) * s.slotBytes); err != nil {
			_ = f.Close()
			_ = s.fs.Remove(path)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.limit = s.used
		return
	}
	s.slabs = append(s.slabs, f)
	for i := s.used + n; i > s.used; i-- {
		s.vacant = append(s.vacant, int32(i))
	}
	s.used += n
}

// Drop forgets a chunk that turned out bad.
func (s *Store) Drop(h *kv.Hash) {
	s.mu.Lock()
	i, ok := s.index[*h]
	if ok {
		delete(s.index, *h)
		if s.slots[i].pins == 0 {
			s.unlink(i)
			s.vacant = append(s.vacant, i)
		}
	}
	s.mu.Unlock()
	if ok {
		_ = s.logged(record{slot: i, op: opEmpty, hash: *h}) // without it the chunk fails its check once more
	}
}

// Usage implements connector.Store.
func (s *Store) Usage() connector.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return connector.Usage{
		Blocks: len(s.index) * s.format.Blocks, Bytes: int64(len(s.index)) * s.slotBytes, Capacity: int64(s.limit) * s.slotBytes,
		Evicted: s.evicted,
	}
}

// Close writes the index down in the order of use and lets the folder go.
func (s *Store) Close() error {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return errors.Join(s.rewriteLog(true), s.closeFiles())
}

func (s *Store) closeFiles() error {
	var errs []error
	if s.log.file != nil {
		errs = append(errs, s.log.file.Close())
	}
	for _, f := range s.slabs {
		errs = append(errs, f.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

func (s *Store) pushNewest(i int32) {
	newest := s.slots[sentinel].prev
	s.slots[i].prev, s.slots[i].next = newest, sentinel
	s.slots[newest].next, s.slots[sentinel].prev = i, i
}

func (s *Store) unlink(i int32) {
	x := &s.slots[i]
	s.slots[x.prev].next, s.slots[x.next].prev = x.next, x.prev
}
