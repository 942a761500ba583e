package transport

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

const (
	// groBuffer holds the largest read: the kernel joins datagrams up to the 65535 bytes an IP packet can describe.
	groBuffer = 1 << 16
	// controlBuffer holds the control messages of a read: TOS, packet info of both IP versions and the segment size take at
	// most 144 bytes together.
	controlBuffer = 256
)

// offloadConn is a UDP socket with receive offload: the kernel joins datagrams of one sender and one ECN mark into a single
// read, and ReadBatch cuts them apart again at the segment size that comes with it. Writes, deadlines and socket options
// are those of the embedded connection. The library reads from one goroutine.
type offloadConn struct {
	*net.UDPConn
	inbox *inbox

	data    []byte // one read
	control []byte

	rest    []byte // of data: what was read but not handed out
	segment int    // size of each datagram in rest but the last, which may be shorter
	meta    []byte // control messages that apply to each datagram in rest
	lost    bool   // the kernel cut the read off
	from    *net.UDPAddr
	fromKey netip.AddrPort // what from was made of, since most reads follow one of the same sender
}

var _ quic.OOBCapablePacketConn = (*offloadConn)(nil)

func newOffloadConn(conn *net.UDPConn, box *inbox) (quic.OOBCapablePacketConn, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("reach the socket: %w", err)
	}
	var optErr error
	if err := raw.Control(func(fd uintptr) {
		optErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	}); err != nil {
		return nil, fmt.Errorf("reach the socket: %w", err)
	}
	if optErr != nil {
		return nil, fmt.Errorf("set UDP_GRO: %w", optErr)
	}
	return &offloadConn{
		UDPConn: conn, inbox: box,
		data: make([]byte, groBuffer), control: make([]byte, controlBuffer), meta: make([]byte, 0, controlBuffer),
	}, nil
}

// ReadBatch hands out up to len(ms) datagrams, from the last read first. It never returns 0 without an error.
func (c *offloadConn) ReadBatch(ms []ipv4.Message, _ int) (int, error) {
	for len(c.rest) == 0 { // an empty datagram leaves nothing to hand out
		if err := c.read(); err != nil {
			return 0, err
		}
	}
	n := 0
	for n < len(ms) && len(c.rest) > 0 {
		size := min(c.segment, len(c.rest))
		m := &ms[n]
		c.inbox.deliver(m, c.rest[:size], c.lost)
		m.NN = copy(m.OOB, c.meta)
		m.Flags, m.Addr = 0, c.from
		c.rest = c.rest[size:]
		n++
	}
	return n, nil
}

func (c *offloadConn) read() error {
	n, nn, flags, from, err := c.ReadMsgUDPAddrPort(c.data, c.control)
	if err != nil {
		return err
	}
	if n > 0 {
		c.inbox.reads.Add(1)
	}
	if from != c.fromKey || c.from == nil {
		c.from, c.fromKey = net.UDPAddrFromAddrPort(from), from
	}
	c.rest, c.segment, c.lost = c.data[:n], n, flags&unix.MSG_TRUNC != 0
	return c.splitControl(c.control[:nn])
}

// splitControl takes the segment size out of the control messages and keeps the others, which the library reads: the ECN
// mark and the address the datagram was sent to.
func (c *offloadConn) splitControl(control []byte) error {
	c.meta = c.meta[:0]
	for len(control) > 0 {
		header, body, remainder, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return fmt.Errorf("read control message: %w", err)
		}
		if header.Level == unix.IPPROTO_UDP && header.Type == unix.UDP_GRO {
			if len(body) >= 4 { // an int in host order
				c.segment = max(1, int(int32(binary.NativeEndian.Uint32(body))))
			}
		} else {
			c.meta = append(c.meta, control[:len(control)-len(remainder)]...)
		}
		control = remainder
	}
	return nil
}
