package sessionactor

import (
	"fmt"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// asked is what requests for event streams have in common: a subscribe or a cache_watch that may be carried out, since its shard is known.
type asked struct {
	lane       *lane // nil once it was answered and let go of
	token      sessioncore.Token
	entry      *shardactor.Entry
	number     uint32 // of the shard in entry
	shard      *shardactor.Handle
	generation id.Generation
	capacity   int // batches that may be queued
	who        identity
	grant      wire.Grant
}

// eventRequest asks for an event stream.
type eventRequest interface {
	// refuse answers it unless it was answered already.
	refuse(f wire.Refusal)
	// from is who asks.
	from() identity
	// serve returns what fills event stream n of a connection; it answers the request.
	serve(s *session, n uint64) *feed
}

// asked is a request of this lane for a shard of an entry, without the shard: see locate.
func (l *lane) asked(t sessioncore.Token, e *shardactor.Entry, shard uint32) asked {
	grants := l.core.Grants()
	return asked{lane: l, token: t, entry: e, number: shard, grant: l.core.Grant(), who: identity{grants.Tenant(), grants.Subject()}}
}

// locate finds the shard as it is served now, or says why it is not: it may be another incarnation than when the request came.
func (r *asked) locate() *wire.Refusal {
	target, ok := r.entry.Shard(r.number)
	name := r.entry.Name
	var f wire.Refusal
	switch {
	case !ok:
		f = noSuchShard(r.entry, r.number)
	case r.entry.Gone():
		f = notFound(kindName(name.Kind), name.Tenant, name.Namespace, name.Name)
	case target.State != route.Local:
		f = elsewhere(target)
	case target.Shard.Log == nil || !target.Shard.Ref.Alive(): // it failed just now, and the next incarnation is not in the table yet
		f = unavailable(wire.ReasonNotReady, "the shard is being replaced; repeat the request")
	default:
		r.shard, r.generation = target.Shard, target.Generation
		return nil
	}
	return &f
}

// kindName is how clients know a kind.
func kindName(k route.Kind) string {
	if k == route.Cache {
		return "cache"
	}
	return "stream"
}

func noSuchShard(e *shardactor.Entry, n uint32) wire.Refusal {
	return wire.Refuse(wire.CodeInvalidRequest, fmt.Sprintf("shard %d does not exist: the %s has shards 0 to %d", n, kindName(e.Name.Kind), len(e.Shards())-1))
}

func (r *asked) from() identity { return r.who }

func (r *asked) refuse(f wire.Refusal) { r.answer(sessioncore.Answer{Refusal: &f}) }

func (r *asked) answer(a sessioncore.Answer) {
	if r.lane == nil { // answered, and let go of
		return
	}
	r.lane.resolve(r.token, a)
}

// forget lets go of the stream it was asked for on. An idle event stream keeps nothing of that.
func (r *asked) forget() { r.lane = nil }
