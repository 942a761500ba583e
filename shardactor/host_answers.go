package shardactor

import "github.com/felixd/felixd/wire"

// refuseUnstepped answers a request that waited in a mailbox that closed: nothing of it happened.
func refuseUnstepped(m Message) {
	f := wire.Refuse(wire.CodeShardUnavailable, "the shard stopped before the request was looked at; repeat it")
	f.Reason = "not_ready"
	settleFor(m, Answer{Refusal: &f})
}

// answerUnknown answers a request that a failing shard had looked at: what became of it cannot be told. busy is the one that the shard
// was busy with when it failed; nil if it was none.
func answerUnknown(m Message, busy *request) {
	f := wire.Refuse(wire.CodeUnacknowledged, "the shard failed before it answered; the request may or may not have been done")
	r, ok := m.(interface{ at() *request })
	settleFor(m, Answer{Refusal: &f, Caused: ok && busy != nil && r.at() == busy})
}

func (r *request) at() *request { return r }

func settleFor(m Message, a Answer) {
	if g, ok := m.(*GroupRequest); ok {
		g.refuse(*a.Refusal)
		return
	}
	if r, ok := m.(interface {
		settle(Answer)
		flush()
	}); ok {
		r.settle(a)
		r.flush()
	}
}

func (r *request) flush() { r.Reply.Flush() }
