package main

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/controlplane/auth"
	"github.com/felixd/felixd/transport"
)

// What `felixd dev` sets up for everybody.
const (
	devTenant    = "t1"
	devNamespace = "default"

	// devTokenTTL is long enough that a developer's token outlives a working month; dev.json is rewritten at each start.
	devTokenTTL = 30 * 24 * time.Hour
	// leafTTL is how long the server certificate lives. A new one is made at each start; only the authority is kept.
	leafTTL = 365 * 24 * time.Hour
)

var (
	devStreams = [...]string{"orders", "ticks"}
	devCaches  = [...]string{"users"}
)

// identity is who this daemon is and whose tokens it takes.
type identity struct {
	caPEM    []byte
	certs    *transport.CertSource
	verifier *auth.Verifier
	signer   *auth.Signer
	// reset lets clients of the process before this one learn at once that it is gone.
	reset *quic.StatelessResetKey
}

const (
	caFile       = "ca.pem"
	caKeyFile    = "ca-key.pem"
	tokenKeyFile = "token-key.pem"
)

// loadIdentity reads the authority and the token key from the data directory, or makes them the first time: clients that
// trust the authority, and tokens that were handed out, survive a restart.
func loadIdentity(d *dataDir, hosts []string, now time.Time) (*identity, error) {
	ca, err := loadCA(d, now)
	if err != nil {
		return nil, err
	}
	certPEM, keyPEM, err := ca.Issue(transport.LeafRequest{Names: serverNames(hosts), Now: now, Lifetime: leafTTL})
	if err != nil {
		return nil, err
	}
	certs, err := transport.NewCertSource(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	key, err := loadTokenKey(d)
	if err != nil {
		return nil, err
	}
	ring := &auth.KeyRing{}
	if err := ring.Publish(devTenant, key.Public()); err != nil {
		return nil, err
	}
	verifier, err := auth.NewVerifier(auth.VerifierOptions{Keys: ring})
	if err != nil {
		return nil, err
	}
	return &identity{caPEM: ca.CertPEM, certs: certs, verifier: verifier, signer: auth.NewSigner(devTenant, key, nil), reset: transport.ResetKey(ca.KeyPEM)}, nil
}

func loadCA(d *dataDir, now time.Time) (*transport.CA, error) {
	certPEM, haveCert, err := d.read(caFile)
	if err != nil {
		return nil, err
	}
	keyPEM, haveKey, err := d.read(caKeyFile)
	if err != nil {
		return nil, err
	}
	if haveCert != haveKey {
		return nil, fmt.Errorf("%s holds only one of %s and %s; put the other back, or remove both to get a new authority", d.path, caFile, caKeyFile)
	}
	if haveCert {
		ca, err := transport.ParseCA(certPEM, keyPEM)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; remove %s and %s to get a new authority", d.file(caFile), err, caFile, caKeyFile)
		}
		return ca, nil
	}
	ca, err := transport.NewCA("felixd dev", now, rand.Reader)
	if err != nil {
		return nil, err
	}
	if err := d.write(caKeyFile, ca.KeyPEM, 0o600); err != nil {
		return nil, err
	}
	return ca, d.write(caFile, ca.CertPEM, 0o644)
}

func loadTokenKey(d *dataDir) (*auth.Key, error) {
	text, ok, err := d.read(tokenKeyFile)
	if err != nil {
		return nil, err
	}
	if ok {
		key, err := auth.ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; remove the file to get a new key (tokens handed out before stop working)", d.file(tokenKeyFile), err)
		}
		return key, nil
	}
	key, err := auth.NewKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	pem, err := key.PEM()
	if err != nil {
		return nil, err
	}
	return key, d.write(tokenKeyFile, pem, 0o600)
}

// serverNames is what the server certificate names: what people type on this machine, and the addresses listened on.
func serverNames(hosts []string) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if h, err := os.Hostname(); err == nil && h != "" {
		names = append(names, h)
	}
	for _, addr := range hosts {
		host, _, err := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); err == nil && host != "" && (ip == nil || !ip.IsUnspecified()) {
			names = append(names, host)
		}
	}
	return names
}

// devPermissions are those of the client token: everything with the streams and caches of one namespace, nothing beyond.
func devPermissions() []string {
	streams, caches := "stream:"+devTenant+"/"+devNamespace+"/*", "cache:"+devTenant+"/"+devNamespace+"/*"
	return []string{
		"stream.publish:" + streams, "stream.subscribe:" + streams,
		"cache.read:" + caches, "cache.write:" + caches,
		"group.consume:" + streams, "group.manage:" + streams,
	}
}

// tokens mints the two tokens of dev.json.
func (id *identity) tokens(now time.Time) (client, admin string, err error) {
	client, err = id.signer.Mint(auth.Claims{Tenant: devTenant, Subject: "p:dev", Audience: auth.AudienceBroker, Permissions: devPermissions(), TTL: devTokenTTL, Now: now})
	if err != nil {
		return "", "", err
	}
	held, err := auth.ParsePermission("tenant.manage:tenant:" + devTenant)
	if err != nil {
		return "", "", err
	}
	var all []string
	for _, p := range auth.ExpandForMint([]auth.Permission{held}) {
		all = append(all, p.String())
	}
	admin, err = id.signer.Mint(auth.Claims{Tenant: devTenant, Subject: "p:admin", Audience: auth.AudienceControlPlane, Permissions: all, TTL: devTokenTTL, Now: now})
	return client, admin, err
}
