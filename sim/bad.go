package main

import (
	"fmt"

	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/wire"
)

// garbage sends what no client should.
func (c *client) garbage() {
	t := c.talk(8)
	r := c.run.world.Rand()
	if r.IntN(3) == 0 {
		t.authenticate("bad") // the stream ends
		return
	}
	if r.IntN(4) == 0 { // something before auth
		t.mayEnd = true
		f := c.drawForm()
		f.ack = wire.AckPerBatch
		t.publishInto(f)
		return
	}
	if !t.authenticate("good") {
		return
	}
	ok := true
	for n := 0; ok && n < c.run.plan.Requests; n++ {
		switch r.IntN(5) {
		case 0:
			ok = t.malformed([]byte(`{"type":"cache_get","key":7}`))
		case 1:
			ok = t.malformed([]byte(`{"type":`))
		case 2:
			ok = t.wrongFlags()
		case 3:
			ok = t.unsupported()
		default:
			ok = t.publish(c.streams()[0], c.drawForm())
		}
	}
	if ok && t.idle() {
		t.noise()
	}
}

// publishInto publishes before a token was accepted: refused, and the end of the stream.
func (t *talk) publishInto(f publishForm) {
	p, region := t.compose(t.c.streams()[0], f)
	t.request(encode(p, f, region, 1), &ask{what: "publish before auth", mayEnd: true, take: func(got answer) error {
		if got.refusal == nil {
			return fmt.Errorf("answered %s", got)
		}
		p.refused = true
		return nil
	}})
}

// malformed sends JSON that is none, or none of the protocol: one error, and the stream goes on.
func (t *talk) malformed(text []byte) bool {
	frame := append(wire.AppendHeader(nil, wire.Header{Length: uint32(len(text))}), text...)
	return t.request(frame, &ask{what: "malformed JSON", take: func(got answer) error {
		if got.refusal == nil {
			return fmt.Errorf("answered %s", got)
		}
		return nil
	}})
}

// wrongFlags sends a frame whose flags do not go together: one error, and the stream goes on.
func (t *talk) wrongFlags() bool {
	frame := append(wire.AppendHeader(nil, wire.Header{Flags: wire.FlagPublishKeyed, Length: 3}), 1, 2, 3)
	return t.request(frame, &ask{what: "frame with wrong flags", take: func(got answer) error {
		if got.refusal == nil {
			return fmt.Errorf("answered %s", got)
		}
		return nil
	}})
}

// unsupported asks for what this broker does not serve: it says so, or ends the stream of a client that can't read that.
func (t *talk) unsupported() bool {
	text := []byte(`{"type":"a_type_of_tomorrow","request_id":5}`)
	frame := append(wire.AppendHeader(nil, wire.Header{Length: uint32(len(text))}), text...)
	return t.request(frame, &ask{what: "a type of tomorrow", mayEnd: true, take: func(got answer) error {
		if got.message == nil || got.message.MessageType() != "unsupported" {
			return fmt.Errorf("answered %s", got)
		}
		return nil
	}})
}

// noise sends bytes that are no frame: the stream ends, and nothing else does.
func (t *talk) noise() {
	t.mayEnd = true
	t.c.run.marks.hit(markGarbage)
	noise := make([]byte, 32)
	for i := range noise {
		noise[i] = byte(t.c.run.world.Rand().IntN(256))
	}
	noise[0] = 'x'
	_, _ = t.stream.Write(noise) // the broker may end the stream meanwhile
	t.finish()
}

// silent opens a stream and never says who it is: the connection is closed in the end.
func (c *client) silent() {
	t := c.talk(1)
	t.mayEnd = true
	if t.idleUntilOver() && c.link.closed {
		c.run.marks.hit(markAuthTimeout)
	}
}

// crowd opens more streams than a stranger may have: the connection is closed.
func (c *client) crowd() {
	for range wire.PreauthStreamsMax + 1 {
		c.talk(1).mayEnd = true
	}
	for _, t := range c.talks {
		if !t.idleUntilOver() {
			return
		}
	}
	if c.link.code == sessionactor.CloseTooManyStreams {
		c.run.marks.hit(markCrowd)
	}
}

// idleUntilOver waits for the end of the stream.
func (t *talk) idleUntilOver() bool {
	for !t.over {
		if !t.changed.Wait() {
			return false
		}
	}
	return true
}
