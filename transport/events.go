package transport

import "fmt"

// EventKind names what an Event reports. The text is stable and fit for a log field.
type EventKind string

// Things the operator should know about a socket.
const (
	// EventSmallBuffer: the kernel granted smaller socket buffers than asked.
	EventSmallBuffer EventKind = "socket_buffer_small"
	// EventNoOffload: receive offload was wanted, if available, and is not.
	EventNoOffload EventKind = "receive_offload_unavailable"
	// EventLargeFirstFlight: a client opened with a datagram larger than QUIC's usual packets, and it was taken whole.
	EventLargeFirstFlight EventKind = "large_first_flight"
	// EventTruncated: a datagram was too large to be used; its sender will not be understood.
	EventTruncated EventKind = "datagram_truncated"
)

// Event is one thing worth a line in the log: what happened, with the numbers, and what to do about it.
type Event struct {
	Kind   EventKind
	Addr   string // the local address of the socket
	Detail string // what happened
	Advice string // what the operator can do; empty when nothing needs doing
}

// String is the whole event on one line.
func (e Event) String() string {
	if e.Advice == "" {
		return fmt.Sprintf("%s on %s: %s", e.Kind, e.Addr, e.Detail)
	}
	return fmt.Sprintf("%s on %s: %s: %s", e.Kind, e.Addr, e.Detail, e.Advice)
}
