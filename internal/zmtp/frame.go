package zmtp

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Flags of a frame.
const (
	flagMore    = 0x01 // another frame of the message follows
	flagLong    = 0x02 // the size has eight bytes
	flagCommand = 0x04
)

// Bounds of what a peer may send: it subscribes or asks, in a few words.
const (
	maxFrameBytes = 4096
	maxFrames     = 8 // in a message
)

// frame is one frame as it came.
type frame struct {
	flags byte
	body  []byte
}

// readFrame reads a frame. Its size is checked before memory is taken for it.
func readFrame(r *bufio.Reader) (frame, error) {
	flags, err := r.ReadByte()
	if err != nil {
		return frame{}, err
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 || flags&flagCommand != 0 && flags&flagMore != 0 {
		return frame{}, fmt.Errorf("read frame: flags %#02x are not of ZMTP 3", flags)
	}
	var head [8]byte
	size := head[7:]
	if flags&flagLong != 0 {
		size = head[:]
	}
	if _, err := io.ReadFull(r, size); err != nil {
		return frame{}, unexpected(err)
	}
	n := binary.BigEndian.Uint64(head[:])
	if n > maxFrameBytes {
		return frame{}, fmt.Errorf("read frame: %d bytes exceed the limit of %d", n, maxFrameBytes)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return frame{}, unexpected(err)
	}
	return frame{flags, body}, nil
}

// unexpected is an end inside of a frame.
func unexpected(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read frame: %w", err)
}

// writeFrame writes a frame with the flags given; the size chooses between short and long.
func writeFrame(w *bufio.Writer, flags byte, body []byte) error {
	var head [9]byte
	n := 2
	if len(body) < 256 {
		head[0], head[1] = flags, byte(len(body))
	} else {
		head[0] = flags | flagLong
		binary.BigEndian.PutUint64(head[1:], uint64(len(body)))
		n = 9
	}
	if _, err := w.Write(head[:n]); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}
