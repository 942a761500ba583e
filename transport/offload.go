package transport

import (
	"fmt"
	"net"
	"strings"

	"github.com/quic-go/quic-go"
)

// Offload says whether a socket asks the kernel to join datagrams of one sender into one read (UDP GRO).
type Offload int

const (
	// OffloadAuto uses receive offload where the kernel has it.
	OffloadAuto Offload = iota
	// OffloadOn insists: a socket that cannot have it is not opened.
	OffloadOn
	// OffloadOff reads datagram by datagram.
	OffloadOff
)

// String is the word that ParseOffload reads.
func (o Offload) String() string {
	switch o {
	case OffloadAuto:
		return "auto"
	case OffloadOn:
		return "on"
	case OffloadOff:
		return "off"
	}
	return fmt.Sprintf("Offload(%d)", int(o))
}

// ParseOffload reads "auto", "on" or "off", in either case. Empty means auto.
func ParseOffload(text string) (Offload, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "auto":
		return OffloadAuto, nil
	case "on":
		return OffloadOn, nil
	case "off":
		return OffloadOff, nil
	}
	return 0, fmt.Errorf("parse receive offload: %q is not one of auto, on, off", text)
}

// OffloadError reports that receive offload was insisted on and cannot be had.
type OffloadError struct{ Err error }

// Error says what to change.
func (e *OffloadError) Error() string {
	return fmt.Sprintf("switch receive offload on: %v: use auto or off on this system", e.Err)
}

// Unwrap gives the kernel's answer.
func (e *OffloadError) Unwrap() error { return e.Err }

// wrapSocket dresses a UDP socket for the QUIC library. What comes back satisfies quic.OOBCapablePacketConn, or
// segmentation offload and ECN would be lost.
func wrapSocket(conn *net.UDPConn, o Offload, box *inbox) (quic.OOBCapablePacketConn, error) {
	if o == OffloadOff {
		return newScatterConn(conn, box), nil
	}
	gro, err := newOffloadConn(conn, box)
	switch {
	case err == nil:
		return gro, nil
	case o == OffloadOn:
		return nil, &OffloadError{Err: err}
	}
	box.tell(Event{
		Kind: EventNoOffload, Detail: err.Error(),
		Advice: "bulk transfers cost more CPU; a Linux kernel of 5.0 or newer has it",
	})
	return newScatterConn(conn, box), nil
}
