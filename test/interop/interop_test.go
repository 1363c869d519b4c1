// Package interop tests the built command with the clients that people really use. It runs with QUIRE_E2E=1 only: it
// needs the default model, and Python with the openai package.
//
//	QUIRE_BINARY   the command; it is built when this is not set
//	QUIRE_PYTHON   Python with the package openai; python3 when not set
//	QUIRE_ZMQ      Python with zmq and msgpack, as Debian's python3-zmq and python3-msgpack; /usr/bin/python3 when not set
//	QUIRE_MODEL    what to serve; the default model when not set
package interop

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const defaultModel = "smollm2:135m"

// needE2E skips the test unless it is asked for.
func needE2E(t *testing.T) {
	t.Helper()
	if os.Getenv("QUIRE_E2E") != "1" {
		t.Skip("QUIRE_E2E is not 1")
	}
}

// binary returns the path of the command, and builds it if need be.
func binary(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("QUIRE_BINARY"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "quire")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/quire").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// model returns what to serve.
func model() string { return cmp.Or(os.Getenv("QUIRE_MODEL"), defaultModel) }

// serve starts the server and returns its address when it is ready. At the end of the test it is told to stop, and must
// do so by itself.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(binary(t), append([]string{"serve", model(), "--port", port}, args...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("serve: %v\n%s", err, log.String())
			}
		case <-time.After(time.Minute):
			t.Errorf("serve does not stop:\n%s", log.String())
			cmd.Process.Kill()
			<-ended
		}
	})
	waitReady(t, "http://"+address, ended, &log)
	return "http://" + address
}

// freeAddress returns a loopback address that nobody listens on now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// waitReady returns when the server says that it is ready.
func waitReady(t *testing.T, url string, ended chan error, log *bytes.Buffer) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		resp, err := http.Get(url + "/health/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("serve ended: %v\n%s", err, log.String())
		case <-deadline:
			t.Fatal("serve is not ready after five minutes")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestOpenAIPython talks to the served default model with the official openai package, streaming and not.
func TestOpenAIPython(t *testing.T) {
	needE2E(t)
	url := serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	python := exec.CommandContext(ctx, cmp.Or(os.Getenv("QUIRE_PYTHON"), "python3"), "openai_client.py")
	python.Env = append(os.Environ(), "OPENAI_BASE_URL="+url+"/v1", "OPENAI_API_KEY=none")
	out, err := python.CombinedOutput()
	if err != nil {
		t.Fatalf("openai_client.py: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestPressure is quire bench pressure on the real model, an eighth of its size; CONTRIBUTING names the command for all.
func TestPressure(t *testing.T) {
	needE2E(t)
	out, err := exec.Command(binary(t), "bench", "pressure", model(), "--scale", "8", "--waves", "2").CombinedOutput()
	if err != nil {
		t.Fatalf("bench pressure: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestBenchServe puts a little load on the server with quire's own client.
func TestBenchServe(t *testing.T) {
	needE2E(t)
	url := serve(t)
	for _, backend := range []string{"openai", "openai-chat"} {
		out, err := exec.Command(binary(t), "bench", "serve", "--base-url", url, "--backend", backend, "--num-prompts", "8",
			"--input-len", "64", "--output-len", "16", "--ignore-eos", "--max-concurrency", "4").CombinedOutput()
		if err != nil {
			t.Fatalf("bench serve: %v\n%s", err, out)
		}
		for _, line := range []string{"Successful requests:                     8", "Total generated tokens:                  128"} {
			if !strings.Contains(string(out), line) {
				t.Errorf("no line %q in\n%s", line, out)
			}
		}
	}
}
