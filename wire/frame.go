package wire

import (
	"encoding/binary"
	"fmt"
)

// A frame is a header of 12 bytes and a payload. Integers are big-endian.
//
//	 0        4        6        8            12            12+length
//	 +--------+--------+--------+------------+------------------+
//	 | magic  | version| flags  |   length   | payload          |
//	 | 4C..   |   u16  |  u16   |    u32     | length bytes     |
//	 +--------+--------+--------+------------+------------------+
//	   "FLX1"     1
//
// magic    tells a client frame from one of the broker-internal protocol ("FLXI"): each side's frames fail to decode
//	    as the other's. A wrong magic or version means the stream cannot be trusted; there is no resynchronising.
// flags    0: the payload is one JSON object. Otherwise the bits name a binary layout and its optional parts.
// length   counts the payload alone. It is a claim of the sender: it is checked against a limit before anything is
//	    allocated, and buffers grow as bytes arrive, never by this number (see BodyCapacity).

const (
	// HeaderSize is the length of a frame header in bytes.
	HeaderSize = 12
	// Magic is the first four bytes of every client frame, "FLX1".
	Magic = 0x464C5831
	// Version is the only protocol version there is. The protocol grows by flags, features and message types.
	Version = 1
)

// Header is what a frame says of itself before its payload.
type Header struct {
	Flags  Flags  // layout of the payload; not yet judged, see CheckClientToServer
	Length uint32 // payload bytes that follow, header not included
}

// ParseHeader reads the first HeaderSize bytes of b. maxPayload is the longest payload the caller will read; a header
// that announces more is refused here, before anything is allocated. Magic and version are judged before the length,
// so that bytes of another protocol are never reported as a frame that is too long. The flags are left to
// CheckClientToServer and CheckServerToClient, because a frame with unknown flags may still be skipped and answered.
//
// Every error is a *FrameError, and after each of them the stream is to be ended.
func ParseHeader(b []byte, maxPayload uint32) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, &FrameError{Kind: ShortHeader, Length: uint32(len(b))}
	}
	if magic := binary.BigEndian.Uint32(b); magic != Magic {
		return Header{}, &FrameError{Kind: BadMagic, Magic: magic}
	}
	if version := binary.BigEndian.Uint16(b[4:]); version != Version {
		return Header{}, &FrameError{Kind: BadVersion, Version: version}
	}
	h := Header{Flags: Flags(binary.BigEndian.Uint16(b[6:])), Length: binary.BigEndian.Uint32(b[8:])}
	if h.Length > maxPayload {
		return Header{}, &FrameError{Kind: TooLong, Length: h.Length, Max: maxPayload}
	}
	return h, nil
}

// AppendHeader appends the 12 bytes of h to dst.
func AppendHeader(dst []byte, h Header) []byte {
	dst = binary.BigEndian.AppendUint32(dst, Magic)
	dst = binary.BigEndian.AppendUint16(dst, Version)
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Flags))
	return binary.BigEndian.AppendUint32(dst, h.Length)
}

// PutHeader writes h into the first HeaderSize bytes of b. It panics when b is shorter.
func PutHeader(b []byte, h Header) {
	_ = b[HeaderSize-1]
	binary.BigEndian.PutUint32(b, Magic)
	binary.BigEndian.PutUint16(b[4:], Version)
	binary.BigEndian.PutUint16(b[6:], uint16(h.Flags))
	binary.BigEndian.PutUint32(b[8:], h.Length)
}

// beginFrame appends a header whose length is still open; endFrame closes it.
func beginFrame(dst []byte, flags Flags) (out []byte, start int) {
	return AppendHeader(dst, Header{Flags: flags}), len(dst)
}

// endFrame writes the length of the frame that began at start. A payload of 4 GiB or more is a broken invariant of
// the sender: every producer of frames cuts far below MaxPayload.
func endFrame(b []byte, start int) []byte {
	n := uint64(len(b) - start - HeaderSize)
	if n > 1<<32-1 {
		panic(fmt.Sprintf("wire: payload of %d bytes does not fit a frame", n))
	}
	binary.BigEndian.PutUint32(b[start+8:], uint32(n))
	return b
}

// BodyCapacity says how large the buffer of a body may be made once received of its declared bytes have arrived: at
// first FirstBodyAllocation, then twice what is there, never more than declared. A sender therefore has to deliver
// half of what it makes the receiver allocate.
func BodyCapacity(received, declared int) int {
	return min(declared, max(FirstBodyAllocation, 2*received))
}

// FrameErrorKind says what is wrong with a frame header.
type FrameErrorKind uint8

const (
	// BadMagic: the bytes are not a client frame at all.
	BadMagic FrameErrorKind = iota + 1
	// BadVersion: a client frame of a version other than 1.
	BadVersion
	// TooLong: the announced payload is longer than the receiver takes.
	TooLong
	// ShortHeader: fewer than HeaderSize bytes were there to read.
	ShortHeader
)

// FrameError is a header that cannot be followed. The stream it came from is to be ended.
type FrameError struct {
	Kind    FrameErrorKind
	Magic   uint32 // BadMagic: what stood there
	Version uint16 // BadVersion: what stood there
	Length  uint32 // TooLong: the announced payload; ShortHeader: the bytes that were there
	Max     uint32 // TooLong: the limit
}

func (e *FrameError) Error() string {
	switch e.Kind {
	case BadMagic:
		return fmt.Sprintf("read frame: magic 0x%08x is not 0x%08x (\"FLX1\"): the peer speaks another protocol or sent bytes outside a frame; end the stream", e.Magic, uint32(Magic))
	case BadVersion:
		return fmt.Sprintf("read frame: version %d is not %d; end the stream", e.Version, Version)
	case TooLong:
		return fmt.Sprintf("read frame: payload of %d bytes is over the limit of %d: send it in smaller batches", e.Length, e.Max)
	default:
		return fmt.Sprintf("read frame: header of %d bytes is cut short, %d are needed", e.Length, HeaderSize)
	}
}
