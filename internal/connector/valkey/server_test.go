package valkey_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/connector/valkey"
	"github.com/quire-ai/quire/internal/connector/valkey/valkeytest"
	"github.com/quire-ai/quire/kv"
)

var format = chunk.Format{Fingerprint: chunk.Fingerprint{3}, Blocks: 4, BlockBytes: 5000}

func newStore(t *testing.T, url string, f chunk.Format) *valkey.Store {
	t.Helper()
	s, err := valkey.New(valkey.Config{URL: url, Format: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func sealed(f chunk.Format, h *kv.Hash, content byte) []byte {
	b := make([]byte, f.BufferBytes())
	copy(f.Payload(b), bytes.Repeat([]byte{content}, f.PayloadBytes()))
	f.Seal(b, h)
	return b
}

// TestReplicasShare: what one writes the other finds and reads; what nobody wrote is missing; another model finds nothing.
func TestReplicasShare(t *testing.T) {
	server := valkeytest.Start(t)
	a, b := newStore(t, server.URL, format), newStore(t, server.URL, format)
	h, absent := kv.Hash{1}, kv.Hash{2}
	if err := a.Write(t.Context(), &h, sealed(format, &h, 7)); err != nil || !a.Has(&h) {
		t.Fatalf("write: %v, has %t", err, a.Has(&h))
	}
	if b.Has(&h) {
		t.Error("the other knows before it asked")
	}
	if err := b.Find(t.Context(), []kv.Hash{absent, h}); err != nil || !b.Has(&h) || b.Has(&absent) {
		t.Errorf("find: %v, has %t and %t; want the written one only", err, b.Has(&h), b.Has(&absent))
	}
	buffer := make([]byte, format.BufferBytes())
	if err := b.Read(t.Context(), &h, buffer); err != nil || format.Check(buffer, &h) != nil || format.Payload(buffer)[99] != 7 {
		t.Errorf("read: %v, %v", err, format.Check(buffer, &h))
	}
	if err := b.Read(t.Context(), &absent, buffer); !errors.Is(err, chunk.ErrMissing) {
		t.Errorf("read of what nobody wrote: %v", err)
	}
	other := format
	other.Fingerprint[0]++
	c := newStore(t, server.URL, other)
	if err := c.Find(t.Context(), []kv.Hash{h}); err != nil || c.Has(&h) {
		t.Errorf("another model: %v, has %t", err, c.Has(&h))
	}
	b.Drop(&h)
	if err := a.Read(t.Context(), &h, buffer); !errors.Is(err, chunk.ErrMissing) || a.Has(&h) {
		t.Errorf("after the other dropped it: %v, has %t", err, a.Has(&h))
	}
}

// TestPassword: a wrong one is an error of each call, not of the start, and no error shows it.
func TestPassword(t *testing.T) {
	server := valkeytest.Start(t, "--requirepass", "sesame")
	h := kv.Hash{1}
	for password, ok := range map[string]bool{"sesame": true, "wrong-word": false} {
		s := newStore(t, strings.Replace(server.URL, "redis://", "valkey://:"+password+"@", 1), format)
		err := s.Write(t.Context(), &h, sealed(format, &h, 1))
		if (err == nil) != ok {
			t.Errorf("password %s: %v", password, err)
		}
		if err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestBadURL(t *testing.T) {
	for _, url := range []string{"http://host", "redis://:secret@host:port", "redis://host/notanumber", "redis://host?nonsense=1", "::"} {
		s, err := valkey.New(valkey.Config{URL: url, Format: format})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s is accepted", url)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

// TestAbsentServer: every call ends in bounded time, with an error.
func TestAbsentServer(t *testing.T) {
	s := newStore(t, "redis://127.0.0.1:1", format)
	h := kv.Hash{1}
	if err := s.Find(context.Background(), []kv.Hash{h}); err == nil {
		t.Error("an absent server answers")
	}
	if err := s.Write(context.Background(), &h, sealed(format, &h, 1)); err == nil || s.Has(&h) {
		t.Errorf("write to an absent server: %v, has %t", err, s.Has(&h))
	}
	s.Drop(&h)
}
