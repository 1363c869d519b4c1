//go:build !linux || !amd64

package cpu

import "errors"

// requestTiles asks the kernel for AMX's tiles. How is known for Linux only.
func requestTiles() error { return errors.New("AMX is used on Linux only") }
