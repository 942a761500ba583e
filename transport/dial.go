package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/quic-go/quic-go"
)

// DialOptions describes one connection to make.
type DialOptions struct {
	// Addr is "host:port". A host name is looked up, and the first of its addresses is dialed.
	Addr string
	// TLS comes from ClientTLS. When it names no server, the host of Addr is verified.
	TLS *tls.Config
	// QUIC comes from ClientQUIC; nil means ClientQUIC of the zero options.
	QUIC *quic.Config
	// SocketBuffers is asked of the kernel per direction, in bytes; 0 means DefaultSocketBuffers.
	SocketBuffers int
	// ReceiveOffload is whether the kernel joins datagrams; see Offload.
	ReceiveOffload Offload
	// LocalAddr is the address to dial from; nil lets the system choose.
	LocalAddr *net.UDPAddr
	// OnEvent, if set, gets what the operator should know about the socket. It must not block.
	OnEvent func(Event)
}

// Dial makes one connection on a socket of its own. The closer ends the socket and abruptly whatever still uses it: close
// the connection first, then call it. On failure the error is a *DialError and nothing is left open.
//
// A server that demands a client certificate or a cipher suite judges after the client's part of the handshake is complete:
// then Dial succeeds and the connection ends right after, with the TLS alert as the error of its first use.
func Dial(ctx context.Context, o DialOptions) (*quic.Conn, io.Closer, error) {
	conn, s, err := dial(ctx, o)
	if err != nil {
		return nil, nil, dialError(o.Addr, err)
	}
	return conn, closerFunc(s.close), nil
}

// DialConn is Dial for callers that keep only the connection, such as a Pool: the socket closes when the connection ends.
func DialConn(ctx context.Context, o DialOptions) (*quic.Conn, error) {
	conn, s, err := dial(ctx, o)
	if err != nil {
		return nil, dialError(o.Addr, err)
	}
	context.AfterFunc(conn.Context(), func() {
		// The connection said its last word before its context ended. A socket that fails to close has no one to tell.
		_ = s.close()
	})
	return conn, nil
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

func dial(ctx context.Context, o DialOptions) (*quic.Conn, *socket, error) {
	if o.TLS == nil {
		return nil, nil, errors.New("no TLS configuration: QUIC has no unencrypted mode, use ClientTLS")
	}
	host, remote, err := resolve(ctx, o.Addr)
	if err != nil {
		return nil, nil, err
	}
	tlsConfig := o.TLS
	if tlsConfig.ServerName == "" {
		tlsConfig = tlsConfig.Clone()
		tlsConfig.ServerName = host
	}
	quicConfig := o.QUIC
	if quicConfig == nil {
		quicConfig = ClientQUIC(ClientOptions{})
	}
	s, err := openSocket(socketOptions{
		network: networkOf(remote), addr: o.LocalAddr, offload: o.ReceiveOffload, report: o.OnEvent,
	})
	if err != nil {
		return nil, nil, err
	}
	conn, err := s.transport.Dial(ctx, remote, tlsConfig, quicConfig)
	if err != nil {
		return nil, nil, errors.Join(err, s.close())
	}
	if err := s.setBuffers(o.SocketBuffers); err != nil {
		Close(conn, CloseShutdown)
		return nil, nil, errors.Join(err, s.close())
	}
	return conn, s, nil
}

func networkOf(remote *net.UDPAddr) string {
	if remote.IP.To4() != nil {
		return "udp4"
	}
	return "udp6"
}

// resolve looks an address up with ctx, which the standard resolver of UDP addresses cannot.
func resolve(ctx context.Context, addr string) (host string, remote *net.UDPAddr, err error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return "", nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 {
		return "", nil, fmt.Errorf("%q is not a port number between 1 and 65535", portText)
	}
	if host == "" {
		return "", nil, errors.New("the host is empty")
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return "", nil, err
	}
	if len(ips) == 0 {
		return "", nil, fmt.Errorf("host %q has no address", host)
	}
	return host, &net.UDPAddr{IP: ips[0].IP, Zone: ips[0].Zone, Port: int(port)}, nil
}
