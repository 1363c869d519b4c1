//go:build unix

package cache

import "syscall"

// Pause stops the server: connections stay, nothing is answered.
func (s *Server) Pause() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (s *Server) Resume() error { return s.cmd.Process.Signal(syscall.SIGCONT) }
