package zmtp

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"time"
)

// handshakeTimeout is the time a peer has to say who it is.
const handshakeTimeout = 10 * time.Second

// writeBuffer is how much is gathered before it is sent.
const writeBuffer = 64 << 10

// Conn is a peer that has shaken hands. One goroutine may read while another writes.
type Conn struct {
	net     net.Conn
	r       *bufio.Reader
	writing sync.Mutex // guards w: the reader answers PING
	w       *bufio.Writer
}

// Handshake makes the peer at the other end of a connection a Conn. The connection remains the caller's to close if it
// fails.
func Handshake(c net.Conn, role Role) (*Conn, error) {
	conn := &Conn{net: c, r: bufio.NewReader(c), w: bufio.NewWriterSize(c, writeBuffer)}
	if err := c.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	if err := conn.shake(role); err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	return conn, nil
}

// Read returns the frames of the next message. Subscriptions made by a command of ZMTP 3.1 come as the messages of 3.0. At
// the end the error is io.EOF.
func (c *Conn) Read() ([][]byte, error) {
	var message [][]byte
	for {
		f, err := readFrame(c.r)
		if err != nil {
			return nil, err
		}
		if f.flags&flagCommand != 0 {
			subscription, err := c.obey(f)
			if err != nil || subscription != nil {
				return [][]byte{subscription}, err
			}
			continue
		}
		if message = append(message, f.body); len(message) > maxFrames {
			return nil, fmt.Errorf("read message: more than %d frames", maxFrames)
		}
		if f.flags&flagMore == 0 {
			return message, nil
		}
	}
}

// The first byte of a message that subscribes, or takes that back; the rest is the prefix of topics.
const (
	Unsubscribe = 0x00
	Subscribe   = 0x01
)

// obey does what a command asks. One about subscriptions is returned as a message.
func (c *Conn) obey(f frame) (subscription []byte, err error) {
	name, data, err := splitCommand(f)
	if err != nil {
		return nil, fmt.Errorf("read command: %w", err)
	}
	switch name {
	case "SUBSCRIBE":
		return append([]byte{Subscribe}, data...), nil
	case "CANCEL":
		return append([]byte{Unsubscribe}, data...), nil
	case "PING": // two bytes time to live, then what is to be given back
		if len(data) < 2 {
			return nil, fmt.Errorf("read command: PING has %d bytes of 2", len(data))
		}
		return nil, c.command("PONG", data[2:])
	case "ERROR":
		return nil, fmt.Errorf("the peer refuses: %q", data)
	}
	return nil, nil // PONG, and what later versions may add
}

// Write sends a message, or keeps it to be sent with the next until Flush. It waits while the peer does not read.
func (c *Conn) Write(frames ...[]byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	for i, body := range frames {
		flags := byte(0)
		if i < len(frames)-1 {
			flags = flagMore
		}
		if err := writeFrame(c.w, flags, body); err != nil {
			return err
		}
	}
	return nil
}

// Flush sends what Write kept.
func (c *Conn) Flush() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.w.Flush()
}

// Close ends the connection. Reads and writes under way fail.
func (c *Conn) Close() error { return c.net.Close() }

// RemoteAddr says who the peer is.
func (c *Conn) RemoteAddr() net.Addr { return c.net.RemoteAddr() }
