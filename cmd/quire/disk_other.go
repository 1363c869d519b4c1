//go:build !unix

package main

// freeDisk is not told on this system.
func freeDisk(string) int64 { return 0 }

// writable leaves it to the first pull to find out.
func writable(string) error { return nil }

// existing is dir.
func existing(dir string) string { return dir }
