// Package valkey keeps chunks of KV in a Valkey or Redis server or cluster, where other replicas find them.
//
// One key holds one chunk, with its header, so that nothing can be half there:
//
//	quire:kv:1:<fingerprint, 32 hex digits>:<hash of the chunk's last block, 64>
//
// The server decides what it keeps: run it with a limit and allkeys-lru. Whether it has a chunk must be asked; the store
// remembers the answers, and its own writes, so that Has is answered from memory. A wrong memory costs a miss. Nothing that
// the server says is believed without the check of package chunk, and nothing is waited for beyond a timeout: it may be
// absent, slow, paused or lying at any time.
package valkey

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/kv"
)

const (
	keyPrefix   = "quire:kv:1:"
	dialTimeout = time.Second
	opTimeout   = 2 * time.Second        // of a read or write of a chunk
	findTimeout = 250 * time.Millisecond // of asking what is there: a request waits for it
	mostKnown   = 1 << 18                // hashes remembered; 8 MB
	connections = 8
)

// Config is the shape of a store.
type Config struct {
	// URL is redis://, rediss:// (TLS), valkey:// or valkeys://, with user, password, host, port and number of the database.
	// Parameters behind a question mark: cluster=true says that the host is a node of a cluster; with TLS, ca=FILE names the
	// certificates to trust in place of the system's, cert=FILE and key=FILE what to show to a server that asks.
	URL    string
	Format chunk.Format // of a chunk
}

// Store keeps chunks in a server. Its methods may be called concurrently.
type Store struct {
	client redis.UniversalClient
	format chunk.Format
	prefix string

	mu    sync.Mutex // guards known
	known map[kv.Hash]struct{}
}

// New returns a store. It connects when it is needed first: the server may be absent.
func New(cfg Config) (*Store, error) {
	client, err := newClient(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("valkey tier: %w", err)
	}
	return &Store{
		client: client, format: cfg.Format, known: map[kv.Hash]struct{}{},
		prefix: keyPrefix + hex.EncodeToString(cfg.Format.Fingerprint[:16]) + ":",
	}, nil
}

func (s *Store) key(h *kv.Hash) string { return s.prefix + hex.EncodeToString(h[:]) }

// Name implements connector.Store.
func (s *Store) Name() string { return "valkey" }

// ChunkBlocks implements connector.Store.
func (s *Store) ChunkBlocks() int { return s.format.Blocks }

// Has tells what is remembered.
func (s *Store) Has(h *kv.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.known[*h]
	return ok
}

// remember notes that a chunk is there. When the memory is full it begins anew.
func (s *Store) remember(h *kv.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= mostKnown {
		clear(s.known)
	}
	s.known[*h] = struct{}{}
}

func (s *Store) forget(h *kv.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, *h)
}

// Find asks the server, in one round trip, which of the chunks it has. Has knows afterwards.
func (s *Store) Find(ctx context.Context, hashes []kv.Hash) error {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	pipe := s.client.Pipeline()
	answers := make([]*redis.IntCmd, len(hashes))
	for i := range hashes {
		answers[i] = pipe.Exists(ctx, s.key(&hashes[i]))
	}
	_, err := pipe.Exec(ctx)
	for i := range hashes { // also on an error: other nodes of a cluster may have answered
		if answers[i].Val() > 0 {
			s.remember(&hashes[i])
		} else {
			s.forget(&hashes[i])
		}
	}
	if err != nil {
		return fmt.Errorf("ask for %d chunks: %w", len(hashes), err)
	}
	return nil
}

// Read reads a chunk into the buffer.
func (s *Store) Read(ctx context.Context, h *kv.Hash, buffer []byte) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	value := s.format.Value(buffer)
	n, err := s.client.GetToBuffer(ctx, s.key(h), value).Result()
	switch {
	case errors.Is(err, redis.Nil):
		s.forget(h)
		return chunk.ErrMissing
	case err != nil:
		return fmt.Errorf("get chunk: %w", err)
	case n != len(value):
		return fmt.Errorf("get chunk: value of %d bytes, want %d", n, len(value))
	}
	return nil
}

// Write keeps a chunk.
func (s *Store) Write(ctx context.Context, h *kv.Hash, buffer []byte) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := s.client.SetFromBuffer(ctx, s.key(h), s.format.Value(buffer)).Err(); err != nil {
		return fmt.Errorf("set chunk: %w", err)
	}
	s.remember(h)
	return nil
}

// Drop removes a chunk that turned out bad, also for the others.
func (s *Store) Drop(h *kv.Hash) {
	s.forget(h)
	ctx, cancel := context.WithTimeout(context.Background(), findTimeout)
	defer cancel()
	_ = s.client.Unlink(ctx, s.key(h)).Err() // what stays is found bad again
}

// Usage implements connector.Store: what this process knows to be there.
func (s *Store) Usage() connector.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.known)
	return connector.Usage{Blocks: n * s.format.Blocks, Bytes: int64(n) * int64(chunk.HeaderBytes+s.format.PayloadBytes())}
}

// Close ends the connections.
func (s *Store) Close() error { return s.client.Close() }
