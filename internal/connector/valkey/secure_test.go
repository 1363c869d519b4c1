package valkey_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/quire-ai/quire/internal/connector/valkey"
	"github.com/quire-ai/quire/internal/connector/valkey/valkeytest"
	"github.com/quire-ai/quire/kv"
)

// roundTrip writes a chunk, finds it from a second store and reads it.
func roundTrip(t *testing.T, url string) error {
	t.Helper()
	a, b := newStore(t, url, format), newStore(t, url, format)
	h := kv.Hash{1}
	if err := a.Write(t.Context(), &h, sealed(format, &h, 7)); err != nil {
		return err
	}
	if err := b.Find(t.Context(), []kv.Hash{h, {2}}); err != nil {
		return err
	}
	buffer := make([]byte, format.BufferBytes())
	if err := b.Read(t.Context(), &h, buffer); err != nil {
		return err
	}
	return format.Check(buffer, &h)
}

// TestTLS: a server with a certificate by an authority of its own is used if the URL names it, and refused if not; so is a
// server that does not speak TLS, and a client without the certificate that the server asks for.
func TestTLS(t *testing.T) {
	server, asking := valkeytest.StartTLS(t, false), valkeytest.StartTLS(t, true)
	plain := valkeytest.Start(t)
	without := func(from string, names ...string) string {
		u, err := url.Parse(from)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		for _, name := range names {
			q.Del(name)
		}
		u.RawQuery = q.Encode()
		return u.String()
	}
	for _, tc := range []struct {
		name, url string
		ok        bool
	}{
		{"its authority is trusted", server.URL, true},
		{"valkeys is rediss", strings.Replace(server.URL, "rediss", "valkeys", 1), true},
		{"its authority is unknown", without(server.URL, "ca"), false},
		{"nobody verifies", without(server.URL, "ca") + "?skip_verify=true", true},
		{"another name", strings.Replace(server.URL, "127.0.0.1", "localhost", 1), false},
		{"without TLS", strings.Replace(without(server.URL, "ca"), "rediss", "redis", 1), false},
		{"TLS to a plain server", strings.Replace(plain.URL, "redis", "rediss", 1), false},
		{"a certificate is shown", asking.URL, true},
		{"a certificate is asked for and not shown", without(asking.URL, "cert", "key"), false},
	} {
		if err := roundTrip(t, tc.url); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestUser: a user with rights to Quire's keys alone is enough; one without rights is an error of each call.
func TestUser(t *testing.T) {
	server := valkeytest.Start(t, strings.Fields("--user quire on >sesame ~quire:kv:* +get +set +exists +unlink "+
		"--user other on >sesame ~other:* +get +set +exists +unlink --user default off")...)
	for user, ok := range map[string]bool{"quire:sesame": true, "quire:wrong": false, "other:sesame": false, ":": false} {
		if err := roundTrip(t, strings.Replace(server.URL, "redis://", "redis://"+user+"@", 1)); (err == nil) != ok {
			t.Errorf("user %s: %v", user, err)
		}
	}
}

// TestBadTLS: what the URL says of certificates is checked at the start.
func TestBadTLS(t *testing.T) {
	for _, url := range []string{
		"rediss://host?ca=/nowhere", "rediss://host?ca=secure_test.go", "rediss://host?cert=/nowhere&key=/nowhere", "redis://host?ca=x",
	} {
		if s, err := valkey.New(valkey.Config{URL: url, Format: format}); err == nil {
			_ = s.Close()
			t.Errorf("%s is accepted", url)
		}
	}
}
