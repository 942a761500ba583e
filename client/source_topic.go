package client

import "github.com/felixd/felixd/wire"

// topic is what a source reads: how to ask for it, and what its frames say. A source calls its methods one at a time, from
// whichever goroutine pulls or subscribes again.
type topic interface {
	// request makes the message that asks for it.
	request(from wire.Start) opening
	// accept takes the answer to that; snap is what comes before it, nil for nothing.
	accept(op string, from wire.Start, answer wire.Message) (accepted wire.Subscribed, snap *snapshot, err error)
	// take makes a piece of a frame; ok is false when there is nothing to hand out. An error is the reason of the end.
	take(s *source, o *opened, header wire.Header, payload []byte) (p piece, ok bool, err error)
}

// opening is a request for an event stream.
type opening struct {
	message wire.Message
	bytes   int // of what is long in it
	needs   wire.Features
	feature string // what is missing when the broker does not offer that
}
