package zmtp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Role is the kind of socket that we are.
type Role string

// The roles.
const (
	Pub    Role = "PUB"    // sends to peers that subscribe
	Router Role = "ROUTER" // answers
)

// peers returns the kinds of socket that a role speaks with (RFC 23, section The Socket Type Property).
func (r Role) peers() []string {
	if r == Pub {
		return []string{"SUB", "XSUB"}
	}
	return []string{"REQ", "DEALER", "ROUTER"}
}

const greetingBytes = 64

// greeting returns ours: version 3.0, mechanism NULL, as client.
func greeting() []byte {
	g := make([]byte, greetingBytes)
	g[0], g[9], g[10] = 0xff, 0x7f, 3
	copy(g[12:32], "NULL")
	return g
}

// checkGreeting says why a peer's greeting is none that we can speak with.
func checkGreeting(g []byte) error {
	switch {
	case g[0] != 0xff || g[9] != 0x7f:
		return errors.New("the peer does not speak ZMTP")
	case g[10] < 3:
		return fmt.Errorf("the peer speaks ZMTP %d, we need 3", g[10])
	case string(bytes.TrimRight(g[12:32], "\x00")) != "NULL":
		return fmt.Errorf("the peer wants mechanism %q, we offer NULL", bytes.TrimRight(g[12:32], "\x00"))
	}
	return nil
}

// shake exchanges greetings and READY commands.
func (c *Conn) shake(role Role) error {
	if _, err := c.net.Write(greeting()); err != nil {
		return err
	}
	var theirs [greetingBytes]byte
	if _, err := io.ReadFull(c.r, theirs[:]); err != nil {
		return err
	}
	if err := checkGreeting(theirs[:]); err != nil {
		return err
	}
	if err := c.command("READY", appendProperty(nil, "Socket-Type", string(role))); err != nil {
		return err
	}
	f, err := readFrame(c.r)
	if err != nil {
		return err
	}
	name, data, err := splitCommand(f)
	if err != nil {
		return err
	}
	if name != "READY" {
		return fmt.Errorf("the peer answers %q to our READY", name)
	}
	kind, err := findProperty(data, "Socket-Type")
	if err != nil {
		return err
	}
	if !slices.Contains(role.peers(), kind) {
		reason := fmt.Sprintf("%s needs %s, not %q", role, strings.Join(role.peers(), " or "), kind)
		_ = c.command("ERROR", append([]byte{byte(min(len(reason), 255))}, reason[:min(len(reason), 255)]...)) // as a courtesy
		return errors.New(reason)
	}
	return nil
}

// command sends a command at once.
func (c *Conn) command(name string, data []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	body := append(append([]byte{byte(len(name))}, name...), data...)
	if err := writeFrame(c.w, flagCommand, body); err != nil {
		return err
	}
	return c.w.Flush()
}

// splitCommand takes a command apart.
func splitCommand(f frame) (name string, data []byte, err error) {
	if f.flags&flagCommand == 0 {
		return "", nil, errors.New("a message where a command is due")
	}
	if len(f.body) == 0 || len(f.body) < 1+int(f.body[0]) {
		return "", nil, fmt.Errorf("command of %d bytes is shorter than its name", len(f.body))
	}
	n := 1 + int(f.body[0])
	return string(f.body[1:n]), f.body[n:], nil
}

// appendProperty appends one property of a READY command.
func appendProperty(dst []byte, name, value string) []byte {
	dst = append(append(dst, byte(len(name))), name...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}

// findProperty returns the value of a property, whose name knows no case; "" if it is not there.
func findProperty(data []byte, name string) (string, error) {
	value := ""
	for len(data) > 0 {
		n := 1 + int(data[0])
		if len(data) < n+4 {
			return "", errors.New("properties of READY end early")
		}
		key, size := string(data[1:n]), uint64(binary.BigEndian.Uint32(data[n:]))
		data = data[n+4:]
		if uint64(len(data)) < size {
			return "", fmt.Errorf("property %q of READY has %d bytes of %d", key, len(data), size)
		}
		if strings.EqualFold(key, name) {
			value = string(data[:size])
		}
		data = data[size:]
	}
	return value, nil
}
