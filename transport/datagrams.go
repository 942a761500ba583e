package transport

import (
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/net/ipv4"
)

const (
	// packetBuffer is the size of the buffers the QUIC library hands to a read: its largest packet. Both ends are told so by
	// the max_udp_payload_size transport parameter (RFC 9000 18.2), but a client that has not heard from us yet may send more.
	packetBuffer = 1452
	// maxFirstFlight is the largest opening datagram that is taken whole. Clients on the same host start with a path MTU of
	// up to 16384 bytes (4096 on Linux). The library may queue 1024 datagrams before a handshake: 16 MiB at this size.
	maxFirstFlight = 16384
)

// DatagramStats counts what came through a socket. All numbers only grow.
type DatagramStats struct {
	Datagrams   uint64 // datagrams delivered
	Reads       uint64 // reads of the socket that delivered something; with receive offload far fewer than Datagrams
	LargeFlight uint64 // opening datagrams above the usual size, taken whole
	Truncated   uint64 // datagrams cut off because they were too large; the sender will not be understood
}

// inbox turns what was read from a socket into the library's messages, and counts. One goroutine delivers; anyone may read
// the counters.
type inbox struct {
	addr   string
	report func(Event)

	datagrams, reads, large, truncated atomic.Uint64
	largeOnce, truncatedOnce           sync.Once
}

func (b *inbox) stats() DatagramStats {
	return DatagramStats{
		Datagrams: b.datagrams.Load(), Reads: b.reads.Load(), LargeFlight: b.large.Load(), Truncated: b.truncated.Load(),
	}
}

// deliver puts one datagram into m. Usual sizes are copied into the library's own buffer. An opening packet that does not
// fit there gets memory of its own, which the message then refers to: cutting it off would make the client wait a second and
// try again smaller, or fail. Anything else that does not fit is cut off, as the library itself would do, and counted.
// lost says that the kernel had already cut it.
func (b *inbox) deliver(m *ipv4.Message, data []byte, lost bool) {
	b.datagrams.Add(1)
	buffer := m.Buffers[0]
	switch {
	case !lost && len(data) <= len(buffer):
		m.N = copy(buffer, data)
	case !lost && len(data) <= maxFirstFlight && opensConnection(data):
		m.Buffers[0] = append([]byte(nil), data...)
		m.N = len(data)
		b.large.Add(1)
		b.largeOnce.Do(func() { b.reportLarge(len(data)) })
	default:
		m.N = copy(buffer, data)
		b.truncated.Add(1)
		b.truncatedOnce.Do(func() { b.reportTruncated(len(data)) })
	}
}

// opensConnection tells packets of the handshake by their long header (RFC 9000 17.2): the two top bits are set. After the
// handshake a peer knows our limit and only sends short headers.
func opensConnection(data []byte) bool { return data[0]&0xc0 == 0xc0 }

func (b *inbox) reportLarge(size int) {
	b.tell(Event{
		Kind:   EventLargeFirstFlight,
		Detail: fmt.Sprintf("a client opened with a datagram of %d bytes, taken whole", size),
	})
}

func (b *inbox) reportTruncated(size int) {
	b.tell(Event{
		Kind:   EventTruncated,
		Detail: fmt.Sprintf("a datagram of %d bytes or more was cut off at %d and cannot be understood", size, packetBuffer),
		Advice: "set FELIX_INITIAL_MTU=1200 in the client's environment",
	})
}

func (b *inbox) tell(e Event) {
	if b.report == nil {
		return
	}
	e.Addr = b.addr
	b.report(e)
}
