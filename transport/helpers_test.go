package transport

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// patience is how long a test waits for something that should happen at once.
const patience = time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func newTestCA(t *testing.T) *CA {
	t.Helper()
	return must[*CA](t)(NewCA("test authority", time.Now(), rand.Reader))
}

func issueSource(t *testing.T, ca *CA, req LeafRequest) *CertSource {
	t.Helper()
	req.Now = time.Now()
	if req.Lifetime == 0 {
		req.Lifetime = time.Hour
	}
	cert, key, err := ca.Issue(req)
	if err != nil {
		t.Fatal(err)
	}
	return must[*CertSource](t)(NewCertSource(cert, key))
}

// house is a listener with an authority of its own.
type house struct {
	*Listener
	ca  *CA
	src *CertSource
}

type change func(*ListenOptions)

func openHouse(t *testing.T, p Policy, changes ...change) *house {
	t.Helper()
	ca := newTestCA(t)
	src := issueSource(t, ca, LeafRequest{Names: []string{"localhost", "127.0.0.1", "::1"}})
	return openHouseWith(t, ca, src, p, changes...)
}

func openHouseWith(t *testing.T, ca *CA, src *CertSource, p Policy, changes ...change) *house {
	t.Helper()
	o := ListenOptions{Addr: "127.0.0.1:0", TLS: ServerTLS(src, p)}
	for _, c := range changes {
		c(&o)
	}
	if o.QUIC == nil { // a busy machine holds up handshakes
		o.QUIC = ServerQUIC(ServerOptions{HandshakeTimeout: patience})
	}
	l := must[*Listener](t)(Listen(o))
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close listener: %v", err)
		}
	})
	return &house{Listener: l, ca: ca, src: src}
}

// options are those of a client that trusts the house.
func (h *house) options(t *testing.T, o ClientTLSOptions) DialOptions {
	t.Helper()
	if o.CAPEM == nil {
		o.CAPEM = h.ca.CertPEM
	}
	return DialOptions{
		Addr: h.Addr().String(), TLS: must[*tls.Config](t)(ClientTLS(o)), QUIC: ClientQUIC(ClientOptions{HandshakeTimeout: patience}),
	}
}

func dialFor(t *testing.T, o DialOptions) (*quic.Conn, error) {
	t.Helper()
	conn, closer, err := Dial(within(t), o)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		Close(conn, CloseShutdown)
		if err := closer.Close(); err != nil {
			t.Errorf("close dialed socket: %v", err)
		}
	})
	return conn, nil
}

// connect makes one connection and returns both of its ends.
func (h *house) connect(t *testing.T, o DialOptions) (client, server *quic.Conn) {
	t.Helper()
	client = must[*quic.Conn](t)(dialFor(t, o))
	server = must[*quic.Conn](t)(h.Accept(within(t)))
	return client, server
}

func ended(t *testing.T, conn *quic.Conn) error {
	t.Helper()
	select {
	case <-conn.Context().Done():
		return context.Cause(conn.Context())
	case <-within(t).Done():
		t.Fatal("the connection did not end")
		return nil
	}
}

func wantDialKind(t *testing.T, err error, want DialKind) *DialError {
	t.Helper()
	var failed *DialError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v (%T), want a *DialError", err, err)
	}
	if failed.Kind != want {
		t.Fatalf("kind %q, want %q: %v", failed.Kind, want, err)
	}
	if failed.Advice() == "" {
		t.Fatal("no advice")
	}
	return failed
}

// recorder collects strings from hooks and lets a test wait for one.
type recorder struct {
	mu    sync.Mutex
	seen  []string
	bells []chan struct{}
}

func (r *recorder) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, text)
	for _, bell := range r.bells {
		close(bell)
	}
	r.bells = nil
}

func (r *recorder) count(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, s := range r.seen {
		if s == text {
			n++
		}
	}
	return n
}

// wait returns when text was recorded at least n times.
func (r *recorder) wait(t *testing.T, text string, n int) {
	t.Helper()
	ctx := within(t)
	for {
		r.mu.Lock()
		bell := make(chan struct{})
		r.bells = append(r.bells, bell)
		r.mu.Unlock()
		if r.count(text) >= n {
			return
		}
		select {
		case <-bell:
		case <-ctx.Done():
			t.Fatalf("%q was recorded %d times, want %d", text, r.count(text), n)
		}
	}
}

// eventually looks until cond holds. It is for effects that announce themselves nowhere.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	ctx := within(t)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("it never happened: %s", what)
		}
	}
}
