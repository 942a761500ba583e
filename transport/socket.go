package transport

import (
	"errors"
	"fmt"
	"net"

	"github.com/quic-go/quic-go"
)

// DefaultSocketBuffers is what a socket asks of the kernel per direction, in bytes. On one host more did not help when
// measured; long paths at high rates want about 7 MiB and the sysctls net.core.rmem_max and wmem_max raised to it.
const DefaultSocketBuffers = 1 * mib

// socket is one UDP socket with the QUIC transport that reads it.
type socket struct {
	udp       *net.UDPConn
	inbox     *inbox
	transport *quic.Transport
}

type socketOptions struct {
	network string // "udp", "udp4" or "udp6"
	addr    *net.UDPAddr
	offload Offload
	report  func(Event)
}

func openSocket(o socketOptions) (*socket, error) {
	udp, err := net.ListenUDP(o.network, o.addr)
	if err != nil {
		return nil, err
	}
	box := &inbox{addr: udp.LocalAddr().String(), report: o.report}
	packets, err := wrapSocket(udp, o.offload, box)
	if err != nil {
		return nil, errors.Join(err, udp.Close())
	}
	return &socket{udp: udp, inbox: box, transport: &quic.Transport{Conn: packets}}, nil
}

// setBuffers sizes the kernel's buffers. It runs after the library took the socket, since the library first sets a size of
// its own. A kernel that grants less is worth an event, not a failure.
func (s *socket) setBuffers(want int) error {
	if want == 0 {
		want = DefaultSocketBuffers
	}
	if err := errors.Join(s.udp.SetReadBuffer(want), s.udp.SetWriteBuffer(want)); err != nil {
		return fmt.Errorf("size socket buffers: %w", err)
	}
	receive, send, err := grantedBuffers(s.udp)
	if err != nil {
		return fmt.Errorf("size socket buffers: %w", err)
	}
	if receive < want || send < want {
		s.inbox.tell(Event{
			Kind:   EventSmallBuffer,
			Detail: fmt.Sprintf("asked for socket buffers of %d bytes, got %d to receive and %d to send", want, receive, send),
			Advice: "raise net.core.rmem_max and net.core.wmem_max, or ask for less",
		})
	}
	return nil
}

// close ends the transport and then the socket, which the library leaves open because it did not open it.
func (s *socket) close() error {
	return errors.Join(s.transport.Close(), s.udp.Close())
}
