package valkey

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// newClient makes a client that neither retries nor outlives a context: the chain does better than to try again at once. It
// follows a cluster's redirections.
func newClient(text string) (redis.UniversalClient, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("URL cannot be parsed") // without the text, which holds the password
	}
	u.Scheme = strings.Replace(u.Scheme, "valkey", "redis", 1)
	if u.Scheme != "rediss" && u.Scheme != "redis" {
		return nil, fmt.Errorf("URL begins with %q: want redis://, rediss://, valkey:// or valkeys://", u.Scheme)
	}
	q := u.Query()
	own := map[string]string{}
	for _, name := range []string{"cluster", "ca", "cert", "key"} {
		own[name] = q.Get(name)
		q.Del(name)
	}
	u.RawQuery = q.Encode()
	var secure *tls.Config
	if u.Scheme == "rediss" {
		if secure, err = tlsConfig(u.Hostname(), own["ca"], own["cert"], own["key"]); err != nil {
			return nil, err
		}
	} else if own["ca"]+own["cert"]+own["key"] != "" {
		return nil, errors.New("URL names certificates but not TLS: want rediss:// or valkeys://")
	}
	logging.Disable() // the library would print to standard error what each call returns, and the chain logs
	if own["cluster"] == "true" {
		return newCluster(u, secure)
	}
	return newSingle(u, secure)
}

func newSingle(u *url.URL, secure *tls.Config) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("URL of %s: %w", u.Host, err)
	}
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = -1, 1, true, true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolSize = dialTimeout, opTimeout, opTimeout, connections
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.TLSConfig = verifying(secure, o.TLSConfig)
	return redis.NewClient(o), nil
}

func newCluster(u *url.URL, secure *tls.Config) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("URL of %s: %w", u.Host, err)
	}
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = -1, 1, true, true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolSize = dialTimeout, opTimeout, opTimeout, connections
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.DisableRoutingPolicies = true // every command names one key
	o.TLSConfig = verifying(secure, o.TLSConfig)
	return redis.NewClusterClient(o), nil
}

// tlsConfig trusts the certificates of the file ca, or the system's, and shows the certificate of cert and key, if any.
func tlsConfig(host, ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("read certificates to trust: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read certificates to trust: %s holds none in PEM form", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("load client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// verifying joins what the library read from the URL, which is whether to verify at all, to our configuration.
func verifying(ours, parsed *tls.Config) *tls.Config {
	if ours != nil && parsed != nil {
		ours.InsecureSkipVerify = parsed.InsecureSkipVerify // skip_verify=true in the URL: the operator's own word
	}
	return ours
}
