package rawquic

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Role is what the server does with a stream.
type Role uint8

const (
	// Sink reads and discards.
	Sink Role = iota + 1
	// Echo sends everything back.
	Echo
	// Relay passes everything on to the subscribers of a group, which have to be there before.
	Relay
	// Subscribe joins a group. One byte, Ready, says that the stream belongs to it; what the relay reads follows.
	Subscribe
)

// String is the role's name.
func (r Role) String() string {
	switch r {
	case Sink:
		return "sink"
	case Echo:
		return "echo"
	case Relay:
		return "relay"
	case Subscribe:
		return "subscribe"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

const (
	// OrderBytes is the length of an Order on the wire.
	OrderBytes = 24
	// AckBytes is the length of an answer: that of an acknowledgement of a broker that has nothing to add.
	AckBytes = 23
	// Ready is what a subscriber reads first.
	Ready = 1

	magic = 0x52415731 // "RAW1"
)

// Order is how a stream begins.
//
//	u32 magic "RAW1"   u8 role   3 bytes of 0   u64 unit   u64 group
type Order struct {
	Role  Role
	Unit  uint64 // Sink and Relay: an answer for so many bytes; 0: no answers
	Group uint64 // Relay and Subscribe: who belongs together
}

// append adds the order to dst.
func (o Order) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, magic)
	dst = append(dst, byte(o.Role), 0, 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, o.Unit)
	return binary.BigEndian.AppendUint64(dst, o.Group)
}

// OrderError is a stream that does not begin with an order.
type OrderError struct{ What string }

// Error says what was wrong.
func (e *OrderError) Error() string {
	return "read order: " + e.What + ": only felixctl bench talks to this server"
}

// readOrder reads the order of a stream. The error is an *OrderError or that of the stream.
func readOrder(r io.Reader) (Order, error) {
	var b [OrderBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return Order{}, fmt.Errorf("read order: %w", err)
	}
	if m := binary.BigEndian.Uint32(b[:]); m != magic {
		return Order{}, &OrderError{fmt.Sprintf("it begins with 0x%08x and not with 0x%08x", m, uint32(magic))}
	}
	o := Order{Role: Role(b[4]), Unit: binary.BigEndian.Uint64(b[8:]), Group: binary.BigEndian.Uint64(b[16:])}
	switch o.Role {
	case Sink, Echo, Relay, Subscribe:
		return o, nil
	}
	return Order{}, &OrderError{fmt.Sprintf("%s is none of sink, echo, relay, subscribe", o.Role)}
}

// acks counts bytes and says which answers are due.
type acks struct {
	unit, got, given uint64
	buf              []byte
}

// take counts n bytes and returns the answers that they make due, numbered from 1; borrowed until the next call.
func (a *acks) take(n int) []byte {
	if a.unit == 0 {
		return nil
	}
	a.got += uint64(n)
	a.buf = a.buf[:0]
	for a.given < a.got/a.unit {
		a.given++
		a.buf = append(a.buf, make([]byte, AckBytes-8)...)
		a.buf = binary.BigEndian.AppendUint64(a.buf, a.given)
	}
	return a.buf
}

// ReadAck reads the next answer and returns its number. buf has AckBytes.
func ReadAck(r io.Reader, buf []byte) (uint64, error) {
	if _, err := io.ReadFull(r, buf[:AckBytes]); err != nil {
		return 0, fmt.Errorf("read answer: %w", err)
	}
	return binary.BigEndian.Uint64(buf[AckBytes-8:]), nil
}
