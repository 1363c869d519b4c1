package cache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// Server is a Valkey or Redis server of this machine, started for a measurement. It keeps nothing on disk.
type Server struct {
	URL string
	cmd *exec.Cmd
	dir string
}

// StartServer starts the valkey-server or redis-server that is installed, on a free port of the loopback.
func StartServer(ctx context.Context) (*Server, error) {
	program, err := exec.LookPath("valkey-server")
	if err != nil {
		if program, err = exec.LookPath("redis-server"); err != nil {
			return nil, errors.New("neither valkey-server nor redis-server is installed")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "quire-bench-valkey-")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: fmt.Sprintf("redis://127.0.0.1:%d", port), dir: dir}
	s.cmd = exec.Command(program, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru")
	s.cmd.Dir = dir
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for start := time.Now(); ; {
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return s, c.Close()
		}
		if time.Since(start) > 20*time.Second {
			return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), s.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), s.Close())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Close ends the server, also one that is paused.
func (s *Server) Close() error {
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
	return errors.Join(err, os.RemoveAll(s.dir))
}
