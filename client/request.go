package client

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/wire"
)

// request is one request of a lane, from submit to its end. Exactly one side ends it, once.
type request struct {
	what    fmt.Stringer // what is tried, for errors; made into text only then
	encoder encoder      // makes its frame; nil once that is made
	id      uint64
	silent  bool // no answer will come: it ends when it is written
	safe    bool // a read: without an answer nothing is in doubt
	sentAt  time.Time

	done   chan struct{} // closed at the end
	ended  atomic.Bool
	answer reply // with err nil
	err    error
	owner  settler // sees the outcome first and takes back what the request holds; may be nil
}

// encoder makes the frame of a request for the lane it is to travel on, under the id it got there.
type encoder interface {
	// encode appends the frame to out. An error means that nothing was appended.
	encode(l *lane, id uint64, out *outbox) error
}

// settler is told of the end of a request, before those who wait for it. It must not block.
type settler interface{ settled(r *request) }

// reply is an answer off the wire: to a publish, or any other message.
type reply struct {
	ack wire.PublishAck // with msg nil
	msg wire.Message
}

// op is what is tried, in words.
func (r *request) op() string { return r.what.String() }

// end completes the request. Ending twice is a mistake of this package.
func (r *request) end(answer reply, err error) {
	if r.ended.Swap(true) {
		panic("client: request " + r.op() + " ended twice")
	}
	r.answer, r.err = answer, err
	if r.owner != nil {
		r.owner.settled(r)
	}
	close(r.done)
}

// unanswered is the error of a request that may have reached the broker and changes something there. cause does not name
// the operation.
func (r *request) unanswered(cause error) error { return &OutcomeUnknownError{Op: r.op(), Err: cause} }
