package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/felixd/felixd/transport"
)

const (
	// redisCertificate is how long its certificate counts: longer than anything is measured.
	redisCertificate = 7 * 24 * time.Hour
	// redisSaid bounds how much of what it says is kept for an error.
	redisSaid = 2 << 10
)

// certify makes an authority and a certificate of it.
func (r *Redis) certify() error {
	now := time.Now()
	ca, err := transport.NewCA("felixctl bench", now, nil)
	if err != nil {
		return err
	}
	cert, key, err := ca.Issue(transport.LeafRequest{Names: []string{"127.0.0.1"}, Now: now, Lifetime: redisCertificate})
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		text []byte
	}{{"ca.pem", ca.CertPEM}, {"cert.pem", cert}, {"key.pem", key}} {
		if err := os.WriteFile(r.path(file.name), file.text, 0o600); err != nil {
			return err
		}
	}
	r.config, err = transport.ClientTLS(transport.ClientTLSOptions{CAPEM: ca.CertPEM, ServerName: "127.0.0.1"})
	return err
}

func (r *Redis) path(name string) string { return filepath.Join(r.folder, name) }

// settings are its configuration file. https://redis.io/docs/latest/operate/oss_and_stack/management/security/encryption
func (r *Redis) settings(port string) string {
	lines := []string{
		"bind 127.0.0.1", "port 0", "tls-port " + port, "tls-auth-clients no",
		fmt.Sprintf("tls-cert-file %q", r.path("cert.pem")), fmt.Sprintf("tls-key-file %q", r.path("key.pem")), fmt.Sprintf("tls-ca-cert-file %q", r.path("ca.pem")),
		fmt.Sprintf("dir %q", r.folder), `save ""`, "daemonize no", `logfile ""`, "loglevel warning",
	}
	if r.Durable {
		lines = append(lines, "appendonly yes", "appendfsync always")
	} else {
		lines = append(lines, "appendonly no")
	}
	return strings.Join(lines, "\n") + "\n"
}

// firstBytes keeps the beginning of what is written to it.
type firstBytes struct {
	mu   sync.Mutex
	most int
	kept bytes.Buffer
}

// Write implements io.Writer.
func (b *firstBytes) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept.Write(p[:min(len(p), b.most-b.kept.Len())])
	return len(p), nil
}

// text is it on one line.
func (b *firstBytes) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(strings.Fields(b.kept.String()), " ")
}
