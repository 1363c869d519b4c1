package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// freePort is a port that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// ask is a command for scripts: it gets a URL, or posts its second argument there, with $KEY as the bearer token. It waits
// for a server that is starting, and fails unless the answer is 200.
func ask() {
	method, body := http.MethodGet, ""
	if len(os.Args) > 2 {
		method, body = http.MethodPost, os.Args[2]
	}
	for deadline := time.Now().Add(time.Minute); ; {
		r, err := http.NewRequest(method, os.Args[1], strings.NewReader(body))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		r.Header.Set("Content-Type", "application/json")
		if key := os.Getenv("KEY"); key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_, err = io.Copy(os.Stdout, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			os.Exit(1)
		}
		return
	}
}
