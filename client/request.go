package client

import (
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/wire"
)

// request is one request of a lane, from submit to its end. Exactly one side ends it, once.
type request struct {
	op     string
	id     uint64
	frame  []byte // whole; nil once it is being written
	silent bool   // no answer will come: it ends when it is written
	safe   bool   // a read: without an answer nothing is in doubt
	sentAt time.Time

	done   chan struct{} // closed at the end
	ended  atomic.Bool
	answer reply // with err nil
	err    error
	after  func() // gives back what the request holds; may be nil
}

// reply is an answer off the wire: to a publish, or any other message.
type reply struct {
	ack *wire.PublishAck
	msg wire.Message
}

func newRequest(op string) *request { return &request{op: op, done: make(chan struct{})} }

// end completes the request. Ending twice is a mistake of this package.
func (r *request) end(answer reply, err error) {
	if r.ended.Swap(true) {
		panic("client: request " + r.op + " ended twice")
	}
	r.answer, r.err = answer, err
	if r.after != nil {
		r.after()
	}
	close(r.done)
}

// unanswered is the error of a request that may have reached the broker and changes something there. cause does not name
// the operation.
func (r *request) unanswered(cause error) error { return &OutcomeUnknownError{Op: r.op, Err: cause} }
