package zmtp

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Endpoint is where a socket is found.
type Endpoint struct {
	Bind    bool   // we listen there; otherwise we connect, and the peer listens
	Network string // as package net calls it: tcp or unix
	Address string
}

// ParseEndpoint reads an endpoint such as tcp://*:5557 or ipc:///run/quire.sock. As in vLLM, we listen if it is ipc or has *
// or :: in it, and connect otherwise; so we do not listen on one address of several unless told to: @ before an endpoint
// means listen, > connect. Port 0 is a free one, and to be listened on.
func ParseEndpoint(text string) (Endpoint, error) {
	fault := func(why string) (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("endpoint %q: %s", text, why)
	}
	rest := strings.TrimLeft(text, "@>")
	scheme, address, ok := strings.Cut(rest, "://")
	if !ok || len(text)-len(rest) > 1 {
		return fault("is not like tcp://*:5557 or ipc:///run/quire.sock")
	}
	bind := scheme == "ipc" || strings.Contains(address, "*") || strings.Contains(address, "::") || strings.HasSuffix(address, ":0")
	if marked := len(rest) < len(text); marked {
		bind = text[0] == '@'
	}
	switch scheme {
	case "ipc":
		if address == "" || strings.HasPrefix(address, "*") {
			return fault("names no file")
		}
		return Endpoint{Bind: bind, Network: "unix", Address: address}, nil
	case "tcp":
	default:
		return fault("the transport must be tcp or ipc, got " + scheme)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fault("has no host and port")
	}
	if port == "*" {
		port = "0"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 && !bind {
		return fault("the port must be in [1, 65535], or * or 0 to listen on a free one, got " + port)
	}
	if host == "*" {
		host = ""
	}
	if host == "" && !bind {
		return fault("names no host to connect to")
	}
	return Endpoint{Bind: bind, Network: "tcp", Address: net.JoinHostPort(host, port)}, nil
}

// Local tells whether only this machine can reach the endpoint, or be reached through it.
func (e Endpoint) Local() bool {
	if e.Network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(e.Address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// String writes the endpoint so that ParseEndpoint reads the same.
func (e Endpoint) String() string {
	mark := ">"
	if e.Bind {
		mark = "@"
	}
	switch {
	case e.Network == "unix":
		return mark + "ipc://" + e.Address
	case strings.HasPrefix(e.Address, ":"):
		return mark + "tcp://*" + e.Address
	}
	return mark + "tcp://" + e.Address
}
