package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/wire"
)

// talk is one bidirectional stream of a client. A writer sends requests, a reader takes the answers, which must come in the order of the
// requests, exactly one for each that was sent whole.
type talk struct {
	c       *client
	name    string
	number  uint64
	stream  stream
	window  int // how many requests the client leaves open
	pending []*ask
	changed *simrt.Gate // of the writer: an answer has come, or the stream is over
	records uint64      // sent so far
	last    *publish

	finished bool // the client has finished its half
	broken   bool // the client has broken its half off
	mayEnd   bool // the broker has a reason to end the stream
	over     bool
	buf      []byte // read and not yet a whole frame
}

// ask is one request that waits for its answer.
type ask struct {
	what    string
	sent    bool
	grants  bool // a subscription, perhaps
	mayEnd  bool // the broker may end the stream instead of answering, or after it
	span    span
	take    func(answer) error
	unknown func() // it will never be answered
}

// answer is one frame of the broker on a stream of a client.
type answer struct {
	message wire.Message     // nil for a binary ack
	ack     *wire.PublishAck // nil for a message
	refusal *wire.Refusal    // what either says of failure
}

// talk opens a stream.
func (c *client) talk(window int) *talk {
	c.next++
	t := &talk{c: c, number: c.next, name: fmt.Sprintf("%s/%d", c.name, c.next), window: window, changed: c.run.world.NewGate()}
	t.stream = c.link.client.open(t.name)
	c.talks = append(c.talks, t)
	c.work(fmt.Sprintf("reader of %d", t.number), t.read)
	return t
}

// request sends a frame once the window has room; false when the stream is over.
func (t *talk) request(frame []byte, a *ask) bool {
	for len(t.pending) >= t.window && !t.over {
		if !t.changed.Wait() {
			return false
		}
	}
	if t.over {
		return false
	}
	w := t.c.run.world
	a.span.from, a.span.fromMS = w.Steps(), t.c.ms()
	if a.take != nil {
		t.pending = append(t.pending, a)
	}
	t.mayEnd = t.mayEnd || a.mayEnd
	w.Note("sends %s", a.what)
	if _, err := t.stream.Write(frame); err != nil {
		return false
	}
	a.sent = true
	return true
}

// idle waits until every request has been answered; false when the stream is over.
func (t *talk) idle() bool {
	for len(t.pending) > 0 && !t.over {
		if !t.changed.Wait() {
			return false
		}
	}
	return !t.over
}

// finish ends the client's half: nothing more will be asked.
func (t *talk) finish() {
	t.finished = true
	_ = t.stream.Close() // it may be over already
}

// reset breaks the client's half off.
func (t *talk) reset() {
	t.broken = true
	t.stream.CancelWrite()
}

// read takes answers until the stream is over.
func (t *talk) read() {
	for {
		flags, body, err := readFrame(t.stream.in, &t.buf)
		if err != nil {
			t.ended(err)
			return
		}
		a, err := decodeAnswer(flags, body)
		if err == nil {
			err = t.answered(a)
		}
		if err != nil {
			t.c.run.failf("%s: %v", t.name, err)
			t.ended(err)
			return
		}
	}
}

// answered gives an answer to the request it must be for.
func (t *talk) answered(a answer) error {
	if len(t.pending) == 0 {
		return fmt.Errorf("an answer to nothing: %s", a)
	}
	next := t.pending[0]
	if !next.sent {
		return fmt.Errorf("an answer to %s, which was not sent yet: %s", next.what, a)
	}
	t.pending = t.pending[1:]
	next.span.to, next.span.toMS = t.c.run.world.Steps(), t.c.ms()
	t.c.run.answered++
	t.c.run.world.Note("%s is answered %s", next.what, a)
	t.changed.Ring()
	if err := next.take(a); err != nil {
		return fmt.Errorf("%s: %w", next.what, err)
	}
	return nil
}

// ended judges the end of a stream. Requests on a stream that lived must all have been answered.
func (t *talk) ended(err error) {
	t.over = true
	run, lost := t.c.run, errors.Is(err, errLost)
	open := 0
	for _, a := range t.pending {
		if a.sent {
			open++
		}
	}
	if lost && open > 0 {
		run.marks.hit(markConnLost)
	}
	if clean := errors.Is(err, io.EOF) && !t.broken && !t.mayEnd; clean && (open > 0 || !t.finished) {
		run.failf("%s: the broker ended the stream with %d requests unanswered, the client finished: %v", t.name, open, t.finished)
	}
	for _, a := range t.pending {
		if a.unknown != nil {
			a.unknown()
		}
	}
	t.pending = nil
	t.changed.Ring()
	t.c.ringWaiting()
	t.stream.in.CancelRead()
	if !t.finished && !t.broken {
		_ = t.stream.Close() // nothing more to say
	}
}

// readBytes is what a client reads at once.
const readBytes = 2 << 10

// readFrame reads one frame; rest holds what was read beyond it.
func readFrame(p *pipe, rest *[]byte) (wire.Flags, []byte, error) {
	for {
		if b := *rest; len(b) >= wire.HeaderSize {
			h, err := wire.ParseHeader(b, wire.MaxPayload)
			if err != nil {
				return 0, nil, err
			}
			if end := wire.HeaderSize + int(h.Length); len(b) >= end {
				*rest = b[end:]
				return h.Flags, b[wire.HeaderSize:end:end], nil
			}
		}
		*rest = slices.Grow(*rest, readBytes)
		n, err := p.Read((*rest)[len(*rest) : len(*rest)+readBytes])
		if err != nil {
			if len(*rest) > 0 && errors.Is(err, io.EOF) {
				return 0, nil, fmt.Errorf("the stream ends inside a frame, with %d bytes", len(*rest))
			}
			return 0, nil, err
		}
		*rest = (*rest)[:len(*rest)+n]
	}
}

// decodeAnswer reads what a broker says on a stream that the client opened.
func decodeAnswer(flags wire.Flags, body []byte) (answer, error) {
	if flags != 0 {
		ack, err := wire.DecodePublishAck(flags, body)
		return answer{ack: &ack, refusal: ack.Refusal}, err
	}
	m, err := wire.DecodeJSON(body)
	if err != nil {
		return answer{}, fmt.Errorf("an answer that does not decode: %w: %q", err, body)
	}
	a := answer{message: m}
	switch m := m.(type) {
	case *wire.ErrorAnswer:
		f := m.Refusal()
		a.refusal = &f
	case *wire.PublishError:
		f := m.Refusal()
		a.refusal = &f
	}
	return a, nil
}

// String is what a trace says of an answer.
func (a answer) String() string {
	what := "ack"
	if a.message != nil {
		what = a.message.MessageType()
	}
	if a.refusal != nil {
		return fmt.Sprintf("%s %v", what, a.refusal)
	}
	return what
}

// isMessage checks that an answer is a message of type M.
func isMessage[M wire.Message](a answer) (M, error) {
	m, ok := a.message.(M)
	if !ok {
		return m, fmt.Errorf("answered %s, want a %T", a, m)
	}
	return m, nil
}
