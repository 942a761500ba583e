package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
)

// ErrListenerClosed is what Accept returns after Close or StopAccepting.
var ErrListenerClosed = errors.New("the listener is closed")

// ListenOptions describes a QUIC listener.
type ListenOptions struct {
	// Addr is "host:port"; port 0 lets the system choose. An IPv4 host, 0.0.0.0 included, listens on IPv4 only; an empty host
	// listens on every address.
	Addr string
	// TLS comes from ServerTLS. QUIC comes from ServerQUIC; nil means ServerQUIC of the zero options.
	TLS  *tls.Config
	QUIC *quic.Config
	// SocketBuffers is asked of the kernel per direction, in bytes; 0 means DefaultSocketBuffers.
	SocketBuffers int
	// ReceiveOffload is whether the kernel joins datagrams; see Offload.
	ReceiveOffload Offload
	// MaxConnections bounds connections, handshakes included; 0 means DefaultMaxConnections.
	MaxConnections int
	// MaxPerIP bounds those of one client address; 0 means DefaultMaxPerIP.
	MaxPerIP int

	// OnRefused, if set, is called with RefusedLimit or RefusedPerIP for each connection refused before its handshake. It
	// runs in the socket's read path: it must only count.
	OnRefused func(reason string)
	// OnHandshakeFailed, if set, is called for each admitted connection that ended before it was accepted, with one of the
	// Failed reasons and the error. It may be called from several goroutines at once.
	OnHandshakeFailed func(reason string, err error)
	// OnEvent, if set, gets what the operator should know about the socket. It must not block.
	OnEvent func(Event)

	// StatelessResetKey lets clients of a restarted broker learn at once that their connections are gone (RFC 9000 10.3),
	// when the key outlives the process. Nil switches stateless resets off.
	StatelessResetKey *quic.StatelessResetKey
	// TokenKey protects address tokens; nil means a random one.
	TokenKey *quic.TokenGeneratorKey
}

// ListenError says why a listener could not be opened.
type ListenError struct {
	Addr string
	Err  error
}

// Error names the address.
func (e *ListenError) Error() string { return fmt.Sprintf("listen on %s: %v", e.Addr, e.Err) }

// Unwrap gives the cause.
func (e *ListenError) Unwrap() error { return e.Err }

// Listener accepts QUIC connections on one UDP socket. All methods are safe for concurrent use.
type Listener struct {
	options   ListenOptions
	admission *admission
	socket    *socket
	quic      *quic.Listener

	closing context.Context // done when accepted connections are to end
	cancel  context.CancelFunc
	live    sync.WaitGroup // admitted connections that have not left
	stopped atomic.Bool
	once    sync.Once
	err     error
}

// Listen opens the socket and starts to answer. It returns a *ListenError. Someone must call Accept in a loop: 32 finished
// handshakes may wait for it, and further ones are refused.
func Listen(o ListenOptions) (*Listener, error) {
	l, err := listen(o)
	if err != nil {
		return nil, &ListenError{Addr: o.Addr, Err: err}
	}
	return l, nil
}

func listen(o ListenOptions) (*Listener, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	network, addr, err := listenAddr(o.Addr)
	if err != nil {
		return nil, err
	}
	s, err := openSocket(socketOptions{
		network: network, addr: addr, offload: o.ReceiveOffload, report: o.OnEvent,
	})
	if err != nil {
		return nil, err
	}
	l := &Listener{options: o, admission: newAdmission(o.MaxConnections, o.MaxPerIP), socket: s}
	l.closing, l.cancel = context.WithCancel(context.Background())
	s.transport.ConnContext = l.admit
	s.transport.VerifySourceAddress = l.admission.suspicious
	s.transport.StatelessResetKey = o.StatelessResetKey
	s.transport.TokenGeneratorKey = o.TokenKey
	if l.quic, err = s.transport.Listen(o.TLS, o.QUIC); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err := s.setBuffers(o.SocketBuffers); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (o *ListenOptions) complete() error {
	if o.TLS == nil {
		return errors.New("no TLS configuration: QUIC has no unencrypted mode, use ServerTLS")
	}
	if o.QUIC == nil {
		o.QUIC = ServerQUIC(ServerOptions{})
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = DefaultMaxConnections
	}
	if o.MaxPerIP == 0 {
		o.MaxPerIP = DefaultMaxPerIP
	}
	if o.MaxConnections < 0 || o.MaxPerIP < 0 || o.SocketBuffers < 0 {
		return errors.New("a limit is negative: use a positive number, or 0 for the default")
	}
	return nil
}

// listenAddr resolves the address and picks the narrowest network that serves it. The standard library would let 0.0.0.0
// listen on IPv6 as well.
func listenAddr(text string) (network string, addr *net.UDPAddr, err error) {
	addr, err = net.ResolveUDPAddr("udp", text)
	if err != nil {
		return "", nil, err
	}
	if addr.IP.To4() != nil {
		return "udp4", addr, nil
	}
	return "udp", addr, nil
}

// admit runs for the first packet of each connection, before any cryptography.
func (l *Listener) admit(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	p, err := l.admission.enter(info.RemoteAddr)
	if err != nil {
		var refused *RefusedError
		if errors.As(err, &refused) && l.options.OnRefused != nil {
			l.options.OnRefused(refused.Reason)
		}
		return nil, err
	}
	l.live.Add(1)
	context.AfterFunc(ctx, func() { // the library ends ctx when the connection ends, however it ends
		defer l.live.Done()
		if !p.leave() {
			l.reportFailure(context.Cause(ctx))
		}
	})
	return remember(ctx, p), nil
}

// Accept waits for the next connection whose handshake is complete. It returns ErrListenerClosed after Close or
// StopAccepting, or the error of ctx. A client that is slow in its handshake delays nobody else.
func (l *Listener) Accept(ctx context.Context) (*quic.Conn, error) {
	conn, err := l.quic.Accept(ctx)
	if err != nil {
		if ctxErr := ctx.Err(); ctxErr != nil && !errors.Is(err, quic.ErrServerClosed) {
			return nil, ctxErr
		}
		return nil, ErrListenerClosed
	}
	placeOf(conn.Context()).accept()
	stop := context.AfterFunc(l.closing, func() { Close(conn, CloseShutdown) })
	context.AfterFunc(conn.Context(), func() { stop() })
	return conn, nil
}

// Addr is the local address of the socket, with the port the system chose.
func (l *Listener) Addr() net.Addr { return l.socket.udp.LocalAddr() }

// Connections returns how many connections hold a place, handshakes included, and how many of them are handshakes.
func (l *Listener) Connections() (open, handshaking int) {
	now := l.admission.now()
	return now.open, now.handshaking
}

// Stats returns the counters of the socket.
func (l *Listener) Stats() DatagramStats { return l.socket.inbox.stats() }

// StopAccepting refuses new connections and ends unfinished handshakes; accepted connections go on. Connections that were
// ready but not yet accepted can still be taken with Accept until it returns ErrListenerClosed.
func (l *Listener) StopAccepting() error {
	l.stopped.Store(true)
	return l.quic.Close()
}

// Close stops accepting, closes every connection with CloseShutdown, waits until each of them is gone, and closes the
// socket. Further calls return what the first did.
func (l *Listener) Close() error {
	l.once.Do(func() {
		err := l.StopAccepting()
		for { // those nobody accepted
			if _, acceptErr := l.Accept(context.Background()); acceptErr != nil {
				break
			}
		}
		l.cancel()
		l.live.Wait()
		l.err = errors.Join(err, l.socket.close())
	})
	return l.err
}
