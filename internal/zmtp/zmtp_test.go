package zmtp_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/quire-ai/quire/internal/zmtp"
	"github.com/quire-ai/quire/internal/zmtp/zmtptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// joined gives the two ends of a connection: ours, shaking hands, and the other's raw bytes.
func joined(t *testing.T, role zmtp.Role) (other net.Conn, ours <-chan *zmtp.Conn, failed <-chan error) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	conns, errs := make(chan *zmtp.Conn, 1), make(chan error, 1)
	go func() {
		c, err := zmtp.Handshake(a, role)
		conns <- c
		errs <- err
		if err != nil {
			a.Close()
		}
	}()
	return b, conns, errs
}

func pair(t *testing.T, role zmtp.Role, kind string) (*zmtp.Conn, *zmtptest.Peer) {
	t.Helper()
	other, ours, failed := joined(t, role)
	peer, err := zmtptest.New(other, kind)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	return <-ours, peer
}

func TestMessages(t *testing.T) {
	c, peer := pair(t, zmtp.Pub, "SUB")
	long := bytes.Repeat([]byte{7}, 100_000)
	go func() {
		c.Write([]byte("topic"), nil, long)
		c.Flush()
	}()
	got, err := peer.Recv()
	if err != nil || !slices.EqualFunc(got, [][]byte{[]byte("topic"), {}, long}, bytes.Equal) {
		t.Errorf("Recv() = %d frames, %v", len(got), err)
	}
	go peer.Send([]byte("\x01kv@"), bytes.Repeat([]byte{1}, 200))
	if got, err := c.Read(); err != nil || len(got) != 2 || string(got[0]) != "\x01kv@" || len(got[1]) != 200 {
		t.Errorf("Read() = %q, %v", got, err)
	}
}

// Subscriptions of ZMTP 3.1 are commands, and come as the messages of 3.0. PING is answered with what it brought.
func TestCommands(t *testing.T) {
	c, peer := pair(t, zmtp.Pub, "SUB")
	go func() {
		peer.Write(zmtptest.Frame(4, []byte("\x09SUBSCRIBEkv@")))
		peer.Write(zmtptest.Frame(4, []byte("\x07UNKNOWN?")))
		peer.Write(zmtptest.Frame(4, []byte("\x06CANCELkv@")))
		peer.Write(zmtptest.Frame(4, []byte("\x04PING\x00\x64context")))
	}()
	for _, want := range []string{"\x01kv@", "\x00kv@"} {
		if got, err := c.Read(); err != nil || len(got) != 1 || string(got[0]) != want {
			t.Errorf("Read() = %q, %v; want %q", got, err, want)
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read()
		ended <- err
	}()
	if flags, body, err := peer.RecvFrame(); err != nil || flags != 4 || string(body) != "\x04PONGcontext" {
		t.Errorf("answer to PING: flags %d, %q, %v", flags, body, err)
	}
	peer.Close()
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("Read after the end: %v; want EOF", err)
	}
}

// Whoever is not one of our peers is refused, and told why where the protocol has a word for it.
func TestRefusals(t *testing.T) {
	cases := []struct {
		name  string
		sends []byte
		want  string
	}{
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: quire\r\nUser-Agent: something-rather-long/1.0\r\n\r\n"), "does not speak ZMTP"},
		{"old version", append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01"), make([]byte, 53)...), "speaks ZMTP 1"},
		{"mechanism", zmtptest.Greeting(0, "PLAIN"), `mechanism "PLAIN"`},
		{"kind", append(zmtptest.Greeting(1, "NULL"), zmtptest.Ready("PULL")...), `PUB needs SUB or XSUB, not "PULL"`},
		{"no kind", append(zmtptest.Greeting(0, "NULL"), zmtptest.Frame(4, []byte("\x05READY"))...), `not ""`},
		{"no READY", append(zmtptest.Greeting(0, "NULL"), zmtptest.Frame(4, []byte("\x04PING\x00\x00"))...), `"PING" to our READY`},
		{"a message", append(zmtptest.Greeting(0, "NULL"), zmtptest.Frame(0, []byte("hi"))...), "a message where a command"},
		{"short command", append(zmtptest.Greeting(0, "NULL"), zmtptest.Frame(4, []byte("\x09READY"))...), "shorter than its name"},
		{"short property", append(zmtptest.Greeting(0, "NULL"), zmtptest.Frame(4, []byte("\x05READY\x09Id"))...), "end early"},
		{"long property", append(zmtptest.Greeting(0, "NULL"), zmtptest.Frame(4, []byte("\x05READY\x01I\xff\xff\xff\xffx"))...), "has 1 bytes"},
		{"long frame", append(zmtptest.Greeting(0, "NULL"), "\x06\x00\x00\x00\x01\x00\x00\x00\x00"...), "4294967296 bytes exceed the limit"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			other, ours, failed := joined(t, zmtp.Pub)
			go io.Copy(io.Discard, other)
			go other.Write(c.sends)
			if err := <-failed; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Handshake: %v; want %q in it", err, c.want)
			}
			<-ours
		})
	}
}

// A peer cannot make us keep more than a few words.
func TestBounds(t *testing.T) {
	for name, sends := range map[string][]byte{
		"frame":   zmtptest.Frame(2, make([]byte, 5000)),
		"message": bytes.Repeat(zmtptest.Frame(1, nil), 9),
		"flags":   {0x80, 0},
		"command": zmtptest.Frame(5, []byte("\x04PING\x00\x00")),
		"ping":    zmtptest.Frame(4, []byte("\x04PING\x00")),
		"cut":     {0, 5, 'a'},
	} {
		t.Run(name, func(t *testing.T) {
			c, peer := pair(t, zmtp.Router, "DEALER")
			go func() {
				peer.Write(sends)
				peer.Close()
			}()
			if got, err := c.Read(); err == nil || err == io.EOF {
				t.Errorf("Read() = %q, %v; want an error", got, err)
			}
			c.Close()
		})
	}
}

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"tcp://*:5557":             "@tcp://*:5557",
		"tcp://0.0.0.0:5557":       ">tcp://0.0.0.0:5557", // as vLLM has it
		"tcp://[::]:5557":          "@tcp://[::]:5557",
		"tcp://127.0.0.1:0":        "@tcp://127.0.0.1:0",
		"tcp://127.0.0.1:*":        "@tcp://127.0.0.1:0",
		"tcp://router:5557":        ">tcp://router:5557",
		"@tcp://10.0.0.7:5557":     "@tcp://10.0.0.7:5557",
		">tcp://[::1]:5557":        ">tcp://[::1]:5557",
		"ipc:///run/q.sock":        "@ipc:///run/q.sock",
		">ipc:///run/q.sock":       ">ipc:///run/q.sock",
		"":                         "!is not like",
		"*:5557":                   "!is not like",
		"@@tcp://*:5557":           "!is not like",
		"inproc://events":          "!the transport must be tcp or ipc, got inproc",
		"tcp://*":                  "!has no host and port",
		"tcp://*:70000":            "!the port must be in [1, 65535], or * or 0 to listen on a free one, got 70000",
		">tcp://h:0":               "!the port must be",
		"tcp://:5557":              "!names no host",
		"ipc://":                   "!names no file",
		"tcp://fe80::1%eth0:55:57": "!has no host and port",
	} {
		e, err := zmtp.ParseEndpoint(text)
		if why, faulty := strings.CutPrefix(want, "!"); faulty {
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("ParseEndpoint(%q) = %v, %v; want an error with %q", text, e, err, why)
			}
			continue
		}
		if err != nil || e.String() != want {
			t.Errorf("ParseEndpoint(%q) = %v, %v; want %s", text, e, err, want)
		}
		if again, err := zmtp.ParseEndpoint(e.String()); err != nil || again != e {
			t.Errorf("ParseEndpoint(%q) = %v, %v; want %v again", e, again, err, e)
		}
	}
}

// echo answers each message with itself.
func echo(c *zmtp.Conn) {
	for {
		m, err := c.Read()
		if err != nil || c.Write(m...) != nil || c.Flush() != nil {
			return
		}
	}
}

func open(t *testing.T, endpoint string, serve func(*zmtp.Conn)) *zmtp.Socket {
	t.Helper()
	e, err := zmtp.ParseEndpoint(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	s, err := zmtp.Open(zmtp.Config{Endpoint: e, Role: zmtp.Router, Serve: serve})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func checkEcho(t *testing.T, p *zmtptest.Peer) {
	t.Helper()
	if err := p.Send(nil, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Recv(); err != nil || len(got) != 2 || string(got[1]) != "hello" {
		t.Fatalf("echo: %q, %v", got, err)
	}
}

func TestListen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "q.sock")
	for _, endpoint := range []string{"tcp://127.0.0.1:0", "ipc://" + file, "tcp://*:0"} {
		s := open(t, endpoint, echo)
		var peers []*zmtptest.Peer
		for range 3 {
			p, err := zmtptest.Dial(s.Addr(), "DEALER")
			if err != nil {
				t.Fatal(err)
			}
			checkEcho(t, p)
			peers = append(peers, p)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		for _, p := range peers { // cut off
			if _, err := p.Recv(); err == nil {
				t.Error("a peer is served after Close")
			}
			p.Close()
		}
	}
}

// The file of a socket whose process was killed is taken over; one that is served, or is no socket, is not.
func TestUnixFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "q.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: file, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	e := zmtp.Endpoint{Bind: true, Network: "unix", Address: file}
	if s, err := zmtp.Open(zmtp.Config{Endpoint: e, Role: zmtp.Pub}); err == nil {
		s.Close()
		t.Error("a socket that is served was taken over")
	}
	l.Close()
	open(t, "ipc://"+file, echo).Close()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := zmtp.Open(zmtp.Config{Endpoint: e, Role: zmtp.Pub}); err == nil {
		s.Close()
		t.Error("a file was taken over")
	}
}

// When we connect, we connect again whenever the peer went away.
func TestConnect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := open(t, ">tcp://"+l.Addr().String(), echo)
	for range 2 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		p, err := zmtptest.New(c, "DEALER")
		if err != nil {
			t.Fatal(err)
		}
		checkEcho(t, p)
		p.Close()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
