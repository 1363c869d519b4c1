package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
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
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
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
		status, answer, err := do(client, r)
		if (err != nil || strings.Contains(answer, "the model is loading")) && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Print(answer)
		if status != http.StatusOK {
			os.Exit(1)
		}
		return
	}
}

// do sends a request and reads the answer whole.
func do(client *http.Client, r *http.Request) (status int, answer string, err error) {
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// mkcert is a command for scripts: it writes a certificate and its key to the two files it is given.
func mkcert() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	for i, block := range []pem.Block{{Type: "CERTIFICATE", Bytes: certificate}, {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(os.Args[1+i], pem.EncodeToMemory(&block), 0o600); err != nil {
			panic(err)
		}
	}
}
