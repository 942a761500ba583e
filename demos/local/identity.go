package local

import (
	"crypto/rand"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/transport"
)

// Identity is what clients know a broker by. A broker that is started again with it is the same to them.
type Identity struct {
	Addr  string // "IP:port" to listen on
	Token string // that it takes
	CA    []byte // PEM, like the next two
	Cert  []byte
	Key   []byte
}

// NewIdentity makes one for an address, good for a day.
func NewIdentity(addr string) (*Identity, error) {
	now := time.Now()
	ca, err := transport.NewCA("felixd demo authority", now, rand.Reader)
	if err != nil {
		return nil, err
	}
	cert, key, err := ca.Issue(transport.LeafRequest{Names: []string{client.DefaultServerName, "127.0.0.1"}, Now: now, Lifetime: 24 * time.Hour})
	if err != nil {
		return nil, err
	}
	return &Identity{Addr: addr, Token: rand.Text(), CA: ca.CertPEM, Cert: cert, Key: key}, nil
}
