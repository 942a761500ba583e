package sessioncore

import (
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Token names one request of a stream, in the order they came.
type Token uint64

// form says how a request's answer is written.
type form uint8

const (
	formSilent     form = iota // an unacknowledged publish: nothing is ever sent
	formBinaryAck              // a binary publish
	formPublishAns             // a JSON publish, or an idempotent one: publish_ok, publish_refused, publish_error
	formMessage                // everything else: a message, or error
)

// slot is one request that was taken and whose answer has not left yet.
type slot struct {
	form        form
	kind        wire.RequestKind
	requestID   wire.Opt[uint64]
	message     wire.Message      // what was asked
	unsupported *wire.Unsupported // the answer to a type that is not served
	bytes       int               // permits held until the outcome, or what it is parked with
	parked      bool              // see Park
	admitted    bool              // it counts in the node's admission, for shard
	shard       id.ShardID
	logged      bool  // its stream has a log that lasts: see Logged
	due         int64 // see Due
	settled     bool
	answer      []byte // encoded, while older requests are still open
}

// ring holds the open requests in order. It grows as needed, up to the window, and lets its memory go when it is empty.
type ring struct {
	slots []slot
	head  int
	count int
	first Token // token of slots[head]
}

func (r *ring) push(s slot) Token {
	if r.count == len(r.slots) {
		next := make([]slot, max(1, 2*len(r.slots)))
		for i := range r.count {
			next[i] = *r.at(i)
		}
		r.slots, r.head = next, 0
	}
	r.slots[(r.head+r.count)&(len(r.slots)-1)] = s
	r.count++
	return r.first + Token(r.count-1)
}

func (r *ring) at(i int) *slot { return &r.slots[(r.head+i)&(len(r.slots)-1)] }

// get returns the open request of that token.
func (r *ring) get(t Token) *slot {
	if t < r.first || t >= r.first+Token(r.count) {
		return nil
	}
	return r.at(int(t - r.first))
}

func (r *ring) pop() {
	r.slots[r.head] = slot{}
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.count--
	r.first++
	if r.count == 0 && len(r.slots) > 16 {
		r.slots, r.head = nil, 0
	}
}
