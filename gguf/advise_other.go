//go:build !linux

package gguf

// Forget tells the system that a tensor's bytes will not be read soon. Here it does nothing.
func (*File) Forget(*Tensor) {}
