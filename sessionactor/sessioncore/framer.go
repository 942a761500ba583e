package sessioncore

import (
	"github.com/felixd/felixd/wire"
)

// Headroom is how many bytes a frame's buffer has in front of its payload, so that a publish can be turned into an event
// frame where it lies: the region's count is preceded by at least six bytes of the publish itself.
const Headroom = wire.HeaderSize

// spareLimit is the largest body buffer an idle stream keeps for its next frame, in bytes.
const spareLimit = 512

// firstBody is what a body buffer begins with on a stream that has not sent a larger frame yet, in bytes: a header alone
// must not reserve much on each of a thousand streams.
const firstBody = 2 << 10

// Frame is one complete frame. Buffer is Headroom bytes followed by the payload.
type Frame struct {
	Flags  wire.Flags
	Buffer []byte
}

// Payload is the frame's payload.
func (f Frame) Payload() []byte { return f.Buffer[Headroom:] }

// Framer cuts a stream of bytes into frames. Bytes go straight into the frame's own buffer; the buffer grows as bytes
// arrive and never by what a header declares, except that a stream which has sent large frames before is trusted with as
// much at once again, up to wire.FirstBodyAllocation. Between frames it holds no more than spareLimit bytes.
type Framer struct {
	seen   int // length of the largest complete body so far
	header [wire.HeaderSize]byte
	got    int // bytes of the header, or of the body, that are there
	inBody bool
	head   wire.Header
	body   []byte // Headroom + what there is room for now
	spare  []byte
}

// Want is where the next bytes go; it is never empty. It stays valid until the next Feed.
func (f *Framer) Want() []byte {
	if !f.inBody {
		return f.header[f.got:]
	}
	if f.got == len(f.body)-Headroom {
		f.grow()
	}
	return f.body[Headroom+f.got:]
}

// Between reports whether no byte of a frame is there: an end of the stream is clean now.
func (f *Framer) Between() bool { return !f.inBody && f.got == 0 }

// InHeader reports whether the stream ended inside a header, which counts as a clean end too.
func (f *Framer) InHeader() bool { return !f.inBody }

// Reserved is the size of the buffer of a body that is being read, in bytes.
func (f *Framer) Reserved() int { return cap(f.body) }

// Feed says that n bytes were put where Want said. done is true when they completed a frame. maxPayload is the limit of
// the stream's phase.
func (f *Framer) Feed(n int, maxPayload uint32) (frame Frame, done bool, err error) {
	f.got += n
	if !f.inBody {
		if f.got < wire.HeaderSize {
			return Frame{}, false, nil
		}
		if f.head, err = wire.ParseHeader(f.header[:], maxPayload); err != nil {
			return Frame{}, false, err
		}
		f.got, f.inBody = 0, true
		f.body = f.take(min(int(f.head.Length), max(firstBody, min(f.seen, wire.FirstBodyAllocation))))
	}
	if f.got < int(f.head.Length) {
		return Frame{}, false, nil
	}
	frame = Frame{Flags: f.head.Flags, Buffer: f.body}
	f.seen = max(f.seen, f.got)
	f.body, f.got, f.inBody = nil, 0, false
	return frame, true, nil
}

// Reuse gives back a frame's buffer that nobody kept.
func (f *Framer) Reuse(frame Frame) {
	if cap(frame.Buffer) <= spareLimit {
		f.spare = frame.Buffer
	}
}

// Rest lets go of what is kept for the next frame.
func (f *Framer) Rest() { f.spare = nil }

func (f *Framer) take(n int) []byte {
	if need := Headroom + n; need <= cap(f.spare) {
		b := f.spare[:need]
		f.spare = nil
		return b
	}
	return make([]byte, Headroom+n)
}

func (f *Framer) grow() {
	next := make([]byte, Headroom+min(int(f.head.Length), 2*f.got))
	copy(next, f.body)
	f.body = next
}
