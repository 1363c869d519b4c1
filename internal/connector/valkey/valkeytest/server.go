// Package valkeytest runs a real server for tests: Debian's redis-server or valkey-server, on the loopback.
package valkeytest

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Server is a server that a test started.
type Server struct {
	URL string

	t    testing.TB
	port int
	args []string
	cmd  *exec.Cmd
}

// Start starts a server that keeps nothing on disk, with more arguments if need be. It ends with the test. Without the
// program the test is skipped, loudly: .ci/run installs it.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, port: port, URL: fmt.Sprintf("redis://127.0.0.1:%d", port), args: args}
	s.Run()
	t.Cleanup(s.Kill)
	return s
}

// program finds the server's binary.
func program(t testing.TB) string {
	for _, name := range []string{"valkey-server", "redis-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("NOT TESTED: neither valkey-server nor redis-server is installed (apt-get install redis-server)")
	return ""
}

// Run starts the server, again after Kill: it is empty then.
func (s *Server) Run() {
	s.t.Helper()
	args := append([]string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"}, s.args...)
	s.cmd = exec.Command(program(s.t), args...)
	s.cmd.Dir = s.t.TempDir()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(s.port))
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("server on port %d does not answer: %v", s.port, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Kill ends the server at once. It may be called again.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // also if it is paused
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Pause stops the server as SIGSTOP does: connections stay, nothing is answered.
func (s *Server) Pause() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (s *Server) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }
