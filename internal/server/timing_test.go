package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quire-ai/quire/internal/executor/executortest"
	"github.com/quire-ai/quire/sched"
)

// The tests of this file run in a bubble whose clock stands still while anything can go on, over connections without a
// buffer: what takes a minute in life takes no time here, and a client that does not read holds its server at once.

// pipes is a listener whose connections are pipes in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects; it fails once the listener is closed.
func (p *pipes) dial() (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// client sends one request a connection.
func (p *pipes) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return p.dial() },
	}}
}

// post sends a request and returns the status and the body.
func (p *pipes) post(body string) (int, string, error) {
	resp, err := p.client().Post("http://pipe/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// served runs a server in the bubble; stop ends it as a signal does and returns what Serve returned.
func served(t *testing.T, s setup, grace time.Duration) (f *fixture, p *pipes, stop func() error) {
	f, p = newFixture(t, s), newPipes()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx, p, grace) }()
	return f, p, func() error { cancel(); return <-done }
}

// slow makes every step take a second.
func slow(*sched.Plan) error { time.Sleep(time.Second); return nil }

// TestSlowClientLosesItsStream holds that a client which stops reading holds nobody up, and is cut off after writeTimeout
// with its work in the engine.
func TestSlowClientLosesItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p, stop := served(t, setup{maxLen: 4096, blocks: 256}, time.Second)
		f.play("F")
		conn, err := p.dial()
		if err != nil {
			t.Fatal(err)
		}
		body := `{"prompt":"ab","max_tokens":2000,"ignore_eos":true,"stream":true}`
		io.WriteString(conn, rawPost(body))
		if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if code, text, err := p.post(`{"prompt":"cd","max_tokens":40}`); code != 200 || err != nil {
			t.Errorf("another client: %d %s %v", code, text, err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("another client waited %v", took)
		}
		for f.active.Load() > 0 {
			time.Sleep(time.Second)
		}
		if took := time.Since(start); took < writeTimeout || took > writeTimeout+2*time.Second {
			t.Errorf("the slow client was cut off after %v, want %v", took, writeTimeout)
		}
		conn.Close()
		f.idle()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestSlowSender holds that a request which comes byte by byte does not hold a connection for ever.
func TestSlowSender(t *testing.T) {
	for _, tc := range []struct {
		name, sent string
		limit      time.Duration
		status     string
	}{
		{"header", "POST /v1/completions HTTP/1.1\r\nHost: x\r\n", headerTimeout, ""},
		{
			"body", "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", requestTimeout,
			"HTTP/1.1 408 Request Timeout\r\n",
		},
		{"body of a refused request", "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", requestTimeout, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, p, stop := served(t, setup{}, time.Second)
				conn, err := p.dial()
				if err != nil {
					t.Fatal(err)
				}
				io.WriteString(conn, tc.sent)
				start := time.Now()
				answer, _ := io.ReadAll(conn) // until the server closes
				if took := time.Since(start); took < tc.limit || took > tc.limit+5*time.Second {
					t.Errorf("cut off after %v, want %v", took, tc.limit)
				}
				if !strings.HasPrefix(string(answer), tc.status) {
					t.Errorf("answer %q, want %q", answer, tc.status)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestShutdown holds that a server which is told to stop finishes what runs, takes no more, and cuts off what does not end
// within the grace period: with an error that says so, not with a broken connection.
func TestShutdown(t *testing.T) {
	for _, tc := range []struct {
		name   string
		grace  time.Duration
		stream bool
		end    string
	}{
		{"in time", 30 * time.Second, true, "data: [DONE]\n\n"},
		{"too slow", 5 * time.Second, true, `"type":"ServiceUnavailableError","param":null,"code":503}}` + "\n\ndata: [DONE]\n\n"},
		{"too slow for a whole answer", 5 * time.Second, false, `"type":"ServiceUnavailableError","param":null,"code":503}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, p, stop := served(t, setup{toy: executortest.Options{Step: slow}}, tc.grace)
				f.play("F")
				answer := make(chan string, 1)
				go func() {
					_, text, _ := p.post(fmt.Sprintf(`{"prompt":"ab","max_tokens":20,"stream":%v}`, tc.stream))
					answer <- text
				}()
				time.Sleep(3 * time.Second)
				start := time.Now()
				stopped := make(chan error, 1)
				go func() { stopped <- stop() }()
				synctest.Wait()
				if _, _, err := p.post(`{"prompt":"cd"}`); err == nil {
					t.Error("a new connection was accepted")
				}
				if rec := f.do("POST", "/v1/completions", `{"prompt":"cd"}`); rec.Code != 503 {
					t.Errorf("a request on an open connection: %d %s, want 503", rec.Code, rec.Body)
				}
				if rec := f.do("GET", "/health/ready", ""); rec.Code != 503 {
					t.Errorf("ready: %d %s, want 503", rec.Code, rec.Body)
				}
				if err := <-stopped; err != nil {
					t.Error(err)
				}
				took, text := time.Since(start), <-answer
				if !strings.HasSuffix(text, tc.end) || strings.Contains(text, "error") != strings.Contains(tc.end, "503") {
					t.Errorf("after %v the answer ends with %q, want %q", took, text[max(0, len(text)-200):], tc.end)
				}
				if took > tc.grace+2*time.Second {
					t.Errorf("stopping took %v, the grace period is %v", took, tc.grace)
				}
			})
		})
	}
}

// TestHealthSeesAStall holds that health fails when work waits and nothing moves, says since when and why, and is well
// again when it moves. Idle is not stalled.
func TestHealthSeesAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := make(gate)
		f, p, stop := served(t, setup{stall: time.Minute, toy: executortest.Options{Step: g.step}}, time.Second)
		time.Sleep(time.Hour)
		if rec := f.do("GET", "/health", ""); rec.Code != 200 {
			t.Errorf("idle: %d %s", rec.Code, rec.Body)
		}
		answered := make(chan int, 1)
		go func() { code, _, _ := p.post(`{"prompt":"ab","max_tokens":1}`); answered <- code }()
		time.Sleep(30 * time.Second)
		if rec := f.do("GET", "/health", ""); rec.Code != 200 {
			t.Errorf("after 30 s: %d %s", rec.Code, rec.Body)
		}
		time.Sleep(time.Minute)
		rec := f.do("GET", "/health", "")
		for _, want := range []string{`"status":"stalled"`, `"since":"2000-01-01T01:00:00Z"`, `"why":"step `} {
			if rec.Code != 503 || !strings.Contains(rec.Body.String(), want) {
				t.Errorf("stalled: %d %s, want 503 with %s", rec.Code, rec.Body, want)
			}
		}
		if rec := f.do("GET", "/health/live", ""); rec.Code != 200 {
			t.Errorf("live: %d %s", rec.Code, rec.Body)
		}
		close(g)
		if code := <-answered; code != 200 {
			t.Errorf("the request: %d", code)
		}
		if rec := f.do("GET", "/health", ""); rec.Code != 200 {
			t.Errorf("well again: %d %s", rec.Code, rec.Body)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestKeepAlive holds that deadlines of one request do not reach the next on the connection.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, stop := served(t, setup{toy: executortest.Options{Step: slow}}, time.Second)
		conn, err := p.dial()
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		for range 3 {
			body := `{"prompt":"ab","max_tokens":70,"ignore_eos":true}` // longer than any timeout
			io.WriteString(conn, rawPost(body))
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
				t.Fatalf("%s: %s %v", resp.Status, text, err)
			}
			time.Sleep(idleTimeout - time.Second)
		}
		conn.Close()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
