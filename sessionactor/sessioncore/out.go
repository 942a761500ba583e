package sessioncore

// OutLimit is how many bytes of answers may wait, to be sent or for an older answer, before a stream takes no further request. The answers
// of requests that are open by then come on top of it.
const OutLimit = 1 << 20

// Owed is how many bytes of answers have not left: those that may, those that wait for an older one, and those that were taken
// to be sent.
func (s *Stream) Owed() int { return len(s.out) + s.waiting + s.sending }

// Out is the answers that may leave now, in order; valid until the next call that is not Pending. Sent says that they
// left.
func (s *Stream) Out() []byte { return s.out }

// Sent empties Out. A stream that is idle keeps no more than a small buffer.
func (s *Stream) Sent() {
	if cap(s.out) > outKept {
		s.out = nil
	}
	s.out = s.out[:0]
}

// TakeOut gives Out away to be sent; what was taken before it has left.
func (s *Stream) TakeOut() []byte {
	out := s.out
	s.out, s.sending = nil, len(out)
	return out
}

// Left says that what TakeOut gave away last has left.
func (s *Stream) Left() { s.sending = 0 }

// HasLeft reports whether a request's answer was moved to Out, or given away: it waits for no older one.
func (s *Stream) HasLeft(t Token) bool { return s.open.get(t) == nil }

// outKept is the largest answer buffer an idle stream keeps, in bytes: a value of 256 bytes with its version, twice as much as it takes since
// buffers grow by that.
const outKept = 1024

// Pending is how many bytes are in Out.
func (s *Stream) Pending() int { return len(s.out) }

// Unread ends the stream because its client does not read its answers while the node has too many of such. Nothing can tell the
// client but the end: whatever it was told would wait behind what it does not read.
func (s *Stream) Unread() {
	if s.fault == "" {
		s.fault = "answers_unread"
	}
	s.Abandon("the client does not read its answers, and the node has too many of such")
}
