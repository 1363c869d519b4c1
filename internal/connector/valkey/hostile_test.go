package valkey_test

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/kv"
)

// hostile listens and treats each connection as told, until the test ends.
func hostile(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			stop := make(chan struct{})
			open.Go(func() { defer close(stop); serve(c); _ = c.Close() })
			open.Go(func() { // a serve that waits for its client ends with the test
				select {
				case <-stop:
				case <-t.Context().Done():
					_ = c.Close()
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); open.Wait() })
	return "redis://" + l.Addr().String()
}

// answering answers every line of a command with a word after *.
func answering(answer string) func(net.Conn) {
	return func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if strings.HasPrefix(line, "*") {
				if _, err := c.Write([]byte(answer)); err != nil {
					return
				}
			}
		}
	}
}

// TestWhateverTheServerSays: whatever comes back, in whatever time, each call ends within its own, nothing unwritten is said to
// be there but on the server's word, and no answer passes for a chunk.
func TestWhateverTheServerSays(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"closes at once":    func(net.Conn) {},
		"noise":             answering("\x00\xff\x13 no protocol\r\n"),
		"errors":            answering("-LOADING the dataset\r\n"),
		"moved, single":     answering("-MOVED 1 127.0.0.1:1\r\n"),
		"a huge length":     answering("$9999999999999\r\nx"),
		"a negative length": answering("$-5\r\n"),
		"a long array":      answering("*2147483647\r\n"),
		"deep arrays":       answering(strings.Repeat("*1\r\n", 10000)),
		"always one":        answering(":1\r\n"),
		"always OK":         answering("+OK\r\n"),
		"empty values":      answering("$0\r\n\r\n"),
		"half a value":      answering("$20184\r\nQUIRE"),
		"never answers": func(c net.Conn) {
			_, _ = bufio.NewReader(c).ReadString(0) // reads, and is silent
		},
		"a byte at a time": func(c net.Conn) {
			for {
				if _, err := c.Write([]byte("$")); err != nil {
					return
				}
				select {
				case <-t.Context().Done():
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, hostile(t, serve), format)
			h := kv.Hash{1}
			start := time.Now()
			err := s.Find(t.Context(), []kv.Hash{h, {2}})
			if err != nil && s.Has(&h) {
				t.Errorf("has a chunk after %v", err)
			}
			if took := time.Since(start); took > 2*time.Second { // 250 ms, on a busy machine
				t.Errorf("find took %v", took)
			}
			start = time.Now()
			buffer := make([]byte, format.BufferBytes())
			if err := s.Read(t.Context(), &h, buffer); err == nil && format.Check(buffer, &h) == nil {
				t.Error("read a chunk")
			}
			_ = s.Write(t.Context(), &h, sealed(format, &h, 1))
			s.Drop(&h)
			if took := time.Since(start); took > 10*time.Second { // 2 s each
				t.Errorf("read and write took %v", took)
			}
			if s.Has(&h) {
				t.Error("has a chunk that was dropped")
			}
		})
	}
}

// TestManyAtOnce uses a store as the chain does, from many goroutines, while the server fails now and then: what is read is
// what was written, and everything else is an error. It is for the race detector; the server runs in the process.
func TestManyAtOnce(t *testing.T) {
	server := miniredis.RunT(t)
	s, other := newStore(t, "redis://"+server.Addr(), format), newStore(t, "redis://"+server.Addr(), format)
	var right, missing atomic.Int64
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			buffer := make([]byte, format.BufferBytes())
			for i := range 60 {
				h := kv.Hash{byte((c*i + i) % 16)}
				switch i % 5 {
				case 0:
					_ = s.Write(t.Context(), &h, sealed(format, &h, h[0]))
				case 1:
					_ = other.Find(t.Context(), []kv.Hash{h, {byte(i)}})
				case 2:
					other.Drop(&h)
				case 3:
					if c == 0 {
						server.SetError("LOADING")
					}
					_ = other.Usage()
					server.SetError("")
				}
				err := other.Read(t.Context(), &h, buffer)
				switch {
				case errors.Is(err, chunk.ErrMissing):
					missing.Add(1)
				case err == nil:
					if err := format.Check(buffer, &h); err != nil || format.Payload(buffer)[3] != h[0] {
						t.Errorf("chunk %d: %v, content %d", h[0], err, format.Payload(buffer)[3])
					}
					right.Add(1)
				}
			}
		})
	}
	clients.Wait()
	if right.Load() == 0 || missing.Load() == 0 {
		t.Errorf("%d reads brought a chunk and %d found none: want some of each", right.Load(), missing.Load())
	}
}
