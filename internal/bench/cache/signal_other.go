//go:build !unix

package cache

import "errors"

// Pause is not to be had here.
func (s *Server) Pause() error { return errors.New("a process cannot be paused on this system") }

// Resume is not to be had here.
func (s *Server) Resume() error { return errors.New("a process cannot be paused on this system") }
