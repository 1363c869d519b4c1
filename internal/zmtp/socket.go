package zmtp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// maxPeers is the most peers of a socket: more are turned away.
const maxPeers = 1024

// Pauses between attempts to connect, and after a failure to accept: each twice the one before.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
)

// Config says what a socket is.
type Config struct {
	Endpoint Endpoint
	Role     Role
	// Serve speaks with one peer, in a goroutine of its own. The connection is closed when it returns; when the socket is
	// closed, the connection is, and Serve must return.
	Serve func(*Conn)
	// Log may be nil.
	Log *slog.Logger
}

// Socket holds an endpoint and serves its peers. Close ends it.
type Socket struct {
	cfg      Config
	listener net.Listener // nil when we connect
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup // the goroutine that accepts or connects, and one a peer

	mu    sync.Mutex // guards what follows
	peers map[net.Conn]bool
}

// Open listens at the endpoint, or begins to connect to it.
func Open(cfg Config) (*Socket, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Socket{cfg: cfg, peers: map[net.Conn]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if !cfg.Endpoint.Bind {
		s.running.Go(s.connect)
		return s, nil
	}
	l, err := listen(cfg.Endpoint)
	if err != nil {
		s.cancel()
		return nil, fmt.Errorf("listen at %s: %w", cfg.Endpoint, err)
	}
	s.listener = l
	s.running.Go(s.accept)
	return s, nil
}

// listen takes the endpoint. The file of a Unix socket that nobody listens on any more is replaced.
func listen(e Endpoint) (net.Listener, error) {
	if e.Network == "unix" {
		if info, err := os.Stat(e.Address); err == nil && info.Mode()&fs.ModeSocket != 0 {
			if c, err := net.Dial(e.Network, e.Address); err == nil {
				return nil, errors.Join(errors.New("somebody listens there"), c.Close())
			}
			if err := os.Remove(e.Address); err != nil {
				return nil, err
			}
		}
	}
	return net.Listen(e.Network, e.Address)
}

// Addr is where the socket listens; nil if it connects.
func (s *Socket) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Close cuts off all peers and returns when nothing of the socket runs any more.
func (s *Socket) Close() error {
	s.cancel()
	var err error
	if s.listener != nil {
		err = s.listener.Close()
	}
	s.mu.Lock()
	for c := range s.peers {
		_ = c.Close() // it is cut off
	}
	s.mu.Unlock()
	s.running.Wait()
	return err
}

// accept takes peers in.
func (s *Socket) accept() {
	pause := firstPause
	for {
		c, err := s.listener.Accept()
		switch {
		case s.ctx.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return
		case err != nil: // no file descriptors left, most likely
			s.cfg.Log.Warn("event peer not accepted", slog.Any("error", err))
			pause = s.rest(pause)
			continue
		}
		pause = firstPause
		if !s.enter(c) {
			s.cfg.Log.Warn("event peer turned away", slog.Any("peer", c.RemoteAddr()), slog.Int("peers", maxPeers))
			_ = c.Close()
			continue
		}
		s.running.Go(func() { s.serve(c) })
	}
}

// connect keeps a connection to the endpoint.
func (s *Socket) connect() {
	pause := firstPause
	var dialer net.Dialer
	for s.ctx.Err() == nil {
		c, err := dialer.DialContext(s.ctx, s.cfg.Endpoint.Network, s.cfg.Endpoint.Address)
		switch {
		case err != nil:
			s.cfg.Log.Debug("event peer not reached", slog.Any("error", err))
		case !s.enter(c):
			_ = c.Close()
		case s.serve(c):
			pause = firstPause
		}
		pause = s.rest(pause)
	}
}

// rest waits, unless the socket closes, and returns how long to wait the next time.
func (s *Socket) rest(pause time.Duration) time.Duration {
	select {
	case <-s.ctx.Done():
	case <-time.After(pause):
	}
	return min(2*pause, lastPause)
}

// enter counts a peer in, unless there are too many or the socket is closed.
func (s *Socket) enter(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || len(s.peers) == maxPeers {
		return false
	}
	s.peers[c] = true
	return true
}

// serve speaks with a peer to the end, and tells whether there was a handshake.
func (s *Socket) serve(c net.Conn) bool {
	defer func() {
		_ = c.Close() // it may be closed
		s.mu.Lock()
		delete(s.peers, c)
		s.mu.Unlock()
	}()
	peer, err := Handshake(c, s.cfg.Role)
	if err != nil {
		s.cfg.Log.Debug("event peer cut off", slog.Any("peer", c.RemoteAddr()), slog.Any("error", err))
		return false
	}
	s.cfg.Serve(peer)
	return true
}
