// Package zmtptest is the other end of a ZMTP connection, for tests: it subscribes and asks, and says wrong things when told
// to. It shares no code with what it tests.
package zmtptest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// Greeting returns the 64 bytes with which a peer of version 3.minor begins.
func Greeting(minor byte, mechanism string) []byte {
	g := append([]byte{0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, minor}, make([]byte, 52)...)
	copy(g[12:], mechanism)
	return g
}

// Frame returns a frame with the flags given, its size in one byte or, with flag 2, in eight.
func Frame(flags byte, body []byte) []byte {
	if flags&2 != 0 {
		return append(binary.BigEndian.AppendUint64([]byte{flags}, uint64(len(body))), body...)
	}
	return append([]byte{flags, byte(len(body))}, body...)
}

// Ready returns the READY command of a kind of socket, with an identity as libzmq sends it.
func Ready(kind string) []byte {
	body := "\x05READY\x0bSocket-Type\x00\x00\x00" + string(rune(len(kind))) + kind + "\x08Identity\x00\x00\x00\x00"
	return Frame(4, []byte(body))
}

// Peer is a connection that has shaken hands.
type Peer struct {
	net.Conn
	kept [][][]byte // messages that came before they were asked for
}

// Dial connects to a socket as one of the kind given, such as SUB or DEALER.
func Dial(addr net.Addr, kind string) (*Peer, error) {
	c, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		return nil, err
	}
	p := &Peer{Conn: c}
	if err := p.shake(kind); err != nil {
		c.Close()
		return nil, err
	}
	return p, nil
}

// New shakes hands over an open connection.
func New(c net.Conn, kind string) (*Peer, error) {
	p := &Peer{Conn: c}
	return p, p.shake(kind)
}

func (p *Peer) shake(kind string) error {
	failed := make(chan error, 1)
	go func() { // over a net.Pipe both sides write first
		_, err := p.Write(append(Greeting(0, "NULL"), Ready(kind)...))
		failed <- err
	}()
	var theirs [64]byte
	if _, err := io.ReadFull(p, theirs[:]); err != nil {
		return err
	}
	if want := Greeting(0, "NULL"); !bytes.Equal(theirs[:], want) {
		return fmt.Errorf("greeting % x; want % x", theirs, want)
	}
	flags, body, err := p.RecvFrame()
	if err == nil && (flags&4 == 0 || !bytes.HasPrefix(body, []byte("\x05READY"))) {
		err = fmt.Errorf("%q instead of READY", body)
	}
	if err != nil {
		return err
	}
	return <-failed
}

// Subscribe subscribes to topics that begin so, and returns when it counts: a PING behind it was answered.
func (p *Peer) Subscribe(prefix string) error {
	if err := p.Send([]byte("\x01" + prefix)); err != nil {
		return err
	}
	if _, err := p.Write(Frame(4, []byte("\x04PING\x00\x00"))); err != nil {
		return err
	}
	for {
		message, answered, err := p.next()
		if err != nil || answered {
			return err
		}
		p.kept = append(p.kept, message)
	}
}

// Ask asks for the batches from a number on.
func (p *Peer) Ask(start uint64) error { return p.Send(nil, binary.BigEndian.AppendUint64(nil, start)) }

// Send sends a message.
func (p *Peer) Send(frames ...[]byte) error {
	var all []byte
	for i, f := range frames {
		more := byte(0)
		if i < len(frames)-1 {
			more = 1
		}
		all = append(all, Frame(more, f)...)
	}
	_, err := p.Write(all)
	return err
}

// Recv returns the next message.
func (p *Peer) Recv() ([][]byte, error) {
	if len(p.kept) > 0 {
		message := p.kept[0]
		p.kept = p.kept[1:]
		return message, nil
	}
	message, _, err := p.next()
	return message, err
}

// next returns the next message, or says that it was a command.
func (p *Peer) next() (message [][]byte, command bool, err error) {
	for {
		flags, body, err := p.RecvFrame()
		if err != nil || flags&4 != 0 {
			return nil, err == nil, err
		}
		message = append(message, body)
		if flags&1 == 0 {
			return message, false, nil
		}
	}
}

// RecvFrame returns the next frame.
func (p *Peer) RecvFrame() (flags byte, body []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(p, head[:2]); err != nil {
		return 0, nil, err
	}
	size := uint64(head[1])
	if head[0]&2 != 0 {
		if _, err := io.ReadFull(p, head[2:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(head[1:])
	}
	body = make([]byte, size)
	_, err = io.ReadFull(p, body)
	return head[0], body, err
}
