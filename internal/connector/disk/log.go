package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/quire-ai/quire/kv"
)

// The index log, little-endian:
//
//	header  0  8  magic "quireix" and the version, 1
//	        8  8  bytes of a slot
//	       16  8  slots of a slab
//	       24 16  first half of the fingerprint
//	       40  8  XXH3 of the 40 bytes before
//	record  0  4  slot
//	        4  4  1: the slot holds the chunk of the hash; 2: it holds nothing
//	        8 32  hash
//	       40  8  XXH3 of the 40 bytes before, seeded with the record's place in the log
//
// The seed keeps records of an older, longer log from being taken for records of this one.
const (
	logName     = "index.log"
	logMagic    = "quireix\x01"
	recordBytes = 48

	opHolds = 1
	opEmpty = 2
)

// record is one entry of the log.
type record struct {
	slot int32
	op   uint32
	hash kv.Hash
}

func (r *record) put(b []byte, place int64) {
	binary.LittleEndian.PutUint32(b, uint32(r.slot))
	binary.LittleEndian.PutUint32(b[4:], r.op)
	copy(b[8:40], r.hash[:])
	binary.LittleEndian.PutUint64(b[40:], xxh3.HashSeed(b[:40], uint64(place)))
}

func (r *record) get(b []byte, place int64) bool {
	if binary.LittleEndian.Uint64(b[40:]) != xxh3.HashSeed(b[:40], uint64(place)) {
		return false
	}
	r.slot, r.op, r.hash = int32(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:]), kv.Hash(b[8:40])
	return true
}

// indexLog appends records. A record that could not be written is written over by the next one.
type indexLog struct {
	mu     sync.Mutex // guards what follows; taken before Store.mu
	file   File
	places int64 // of records written, the header counted as one
	buffer [recordBytes]byte
}

func (l *indexLog) append(r record) error {
	r.put(l.buffer[:], l.places)
	if n, err := l.file.WriteAt(l.buffer[:], l.places*recordBytes); err != nil || n < recordBytes {
		return fmt.Errorf("append to %s: %d of %d bytes written: %w", logName, n, recordBytes, err)
	}
	l.places++
	return nil
}

// logHeader is what a log of this store begins with.
func (s *Store) logHeader() []byte {
	b := make([]byte, recordBytes)
	copy(b, logMagic)
	binary.LittleEndian.PutUint64(b[8:], uint64(s.slotBytes))
	binary.LittleEndian.PutUint64(b[16:], uint64(s.perSlab))
	copy(b[24:40], s.format.Fingerprint[:])
	binary.LittleEndian.PutUint64(b[40:], xxh3.Hash(b[:40]))
	return b
}

// errNoIndex says that there is no log that can be used.
var errNoIndex = errors.New("no usable index")

// readLog calls f for each sound record of the folder's log, in order.
func (s *Store) readLog(f func(record)) error {
	file, err := s.fs.Open(filepath.Join(s.dir, logName), false)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return err
	}
	data := make([]byte, size/recordBytes*recordBytes)
	if len(data) < recordBytes {
		return errNoIndex
	}
	if _, err := file.ReadAt(data, 0); err != nil {
		return fmt.Errorf("%w: %w", errNoIndex, err)
	}
	if string(data[:recordBytes]) != string(s.logHeader()) {
		return errNoIndex
	}
	var r record
	for place := int64(1); place*recordBytes < int64(len(data)); place++ {
		if r.get(data[place*recordBytes:][:recordBytes], place) {
			f(r)
		}
	}
	return nil
}

// logged appends a record; a log much longer than the index is rewritten first. It may wait for the disk, so Store.mu is not
// held. What others do to the index meanwhile may be missing from the log: it is a hint.
func (s *Store) logged(r record) error {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if s.log.places > 4*int64(len(s.slots))+1024 {
		if err := s.rewriteLog(false); err != nil {
			return err
		}
	}
	return s.log.append(r)
}

// rewriteLog replaces the log by one that says what the index says, oldest chunk first, and goes on with that. It needs the
// log's lock. If durable, it is on the disk afterwards.
func (s *Store) rewriteLog(durable bool) error {
	data, places := s.describe()
	path := filepath.Join(s.dir, logName)
	file, err := s.fs.Open(path+".new", false)
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", logName, err)
	}
	err = writeAll(file, data)
	if err == nil && durable {
		err = file.Sync()
	}
	if err == nil {
		err = s.fs.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", logName, errors.Join(err, file.Close()))
	}
	if s.log.file != nil {
		_ = s.log.file.Close() // of the log that was replaced
	}
	s.log.file, s.log.places = file, places
	return nil
}

// describe returns a log that says what the index says, and its length in records.
func (s *Store) describe() (data []byte, places int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, places = s.logHeader(), 1
	add := func(i int32) {
		data = append(data, make([]byte, recordBytes)...)
		r := record{slot: i, op: opHolds, hash: s.slots[i].hash}
		r.put(data[places*recordBytes:], places)
		places++
	}
	for i := s.slots[sentinel].next; i != sentinel; i = s.slots[i].next {
		add(i)
	}
	for _, i := range s.index {
		if s.slots[i].pins > 0 { // being read, so in no queue
			add(i)
		}
	}
	return data, places
}

// writeAll makes the file begin with the data and hold nothing that could be taken for records behind it.
func writeAll(f File, data []byte) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size > int64(len(data)) { // of a rewrite that was cut off
		data = append(data, make([]byte, size-int64(len(data)))...)
	}
	if n, err := f.WriteAt(data, 0); err != nil || n < len(data) {
		return fmt.Errorf("%d of %d bytes written: %w", n, len(data), err)
	}
	return nil
}
