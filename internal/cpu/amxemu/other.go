//go:build !linux || !amd64

package main

import (
	"errors"
	"io"
)

func run([]string, io.Writer) (status int, err error) {
	return 0, errors.New("this works on Linux on amd64 only")
}
