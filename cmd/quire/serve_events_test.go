package main

import (
	"net"
	"strings"
	"testing"
)

// TestEventTopic holds by which name llm-d's router knows this server: the address and port to which it sends requests.
func TestEventTopic(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8000} }
	t.Setenv("POD_IP", "")
	for ip, want := range map[string]string{
		"127.0.0.1": "kv@127.0.0.1:8000@m",
		"10.0.0.7":  "kv@10.0.0.7:8000@m",
		"fd00::7":   "kv@[fd00::7]:8000@m",
	} {
		if got := eventTopic(at(ip), "m"); got != want {
			t.Errorf("listening at %s: topic %s; want %s", ip, got, want)
		}
	}
	if got := eventTopic(at("0.0.0.0"), "m"); strings.Contains(got, "0.0.0.0") {
		t.Errorf("listening everywhere: topic %s names no address", got)
	}
	t.Setenv("POD_IP", "10.1.2.3")
	if got := eventTopic(at("0.0.0.0"), "m"); got != "kv@10.1.2.3:8000@m" {
		t.Errorf("in a pod: topic %s; want kv@10.1.2.3:8000@m", got)
	}
}
