// Package valkeytest runs a real server for tests: Debian's redis-server or valkey-server, on the loopback.
package valkeytest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	tls  bool
}

// Start starts a server that keeps nothing on disk, with more arguments if need be. It ends with the test. Without the
// program the test is skipped, loudly: .ci/run installs it.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	port := freePort(t)
	s := &Server{t: t, port: port, URL: fmt.Sprintf("redis://127.0.0.1:%d", port), args: args}
	s.Run()
	t.Cleanup(s.Kill)
	return s
}

// StartTLS starts a server that speaks TLS only, with a certificate by an authority of its own. With clients it asks its
// clients for one. URL names the files.
func StartTLS(t testing.TB, clients bool) *Server {
	t.Helper()
	dir := t.TempDir()
	writeCertificates(t, dir)
	ask := "no"
	if clients {
		ask = "yes"
	}
	port := freePort(t)
	s := &Server{t: t, port: port, tls: true, args: []string{
		"--tls-auth-clients", ask, "--tls-ca-cert-file", filepath.Join(dir, "ca.pem"),
		"--tls-cert-file", filepath.Join(dir, "cert.pem"), "--tls-key-file", filepath.Join(dir, "key.pem"),
	}}
	s.URL = fmt.Sprintf("rediss://127.0.0.1:%d?ca=%s", port, filepath.Join(dir, "ca.pem"))
	if clients {
		s.URL += fmt.Sprintf("&cert=%s&key=%s", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	}
	s.Run()
	t.Cleanup(s.Kill)
	return s
}

// freePort finds a port that nobody listens on.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
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
	port := []string{"--port", strconv.Itoa(s.port)}
	if s.tls {
		port = []string{"--port", "0", "--tls-port", strconv.Itoa(s.port)}
	}
	args := append(append(port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"), s.args...)
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
func (s *Server) Pause() { s.signal(stop) }

// Resume lets it go on.
func (s *Server) Resume() { s.signal(resume) }

func (s *Server) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Errorf("signal %v to the server: %v", sig, err)
	}
}
