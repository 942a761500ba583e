package sessionactor

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
)

// brokenShard answers every publish as a shard that failed: while it was busy with it if it has more than one record, or else while it
// was busy with another of the same turn.
type brokenShard struct{}

func (brokenShard) Receive(t *actors.Turn) {
	for _, m := range t.Messages() {
		p := m.(*shardactor.Publish)
		f := wire.Refuse(wire.CodeUnacknowledged, "the shard failed")
		p.Reply.Answer(p.Token, shardactor.Answer{Refusal: &f, Caused: p.Batch.Count > 1})
		p.Reply.Flush()
	}
}

// breakable is a site with a stream of which every publish of more than one record makes the shard fail.
func breakable(t *testing.T) *site {
	x := open(t, setting{change: func(o *Options) { o.Auth = byName{} }})
	ref := must(actors.Spawn[shardactor.Message](x.sys, actors.Spec[shardactor.Message]{
		Name: "broken", Kind: "shard", Tenant: tenant, Bounds: actors.Bounds{DataItems: 64, DataBytes: 1 << 20},
		New: func() actors.Actor { return brokenShard{} },
	}))(t)
	name := route.Name{Kind: route.Stream, Tenant: tenant, Namespace: namespace, Name: "broken"}
	target := shardactor.Target{State: route.Local, Shard: &shardactor.Handle{Number: 1 << 20, Ref: ref}}
	x.opts.Table.Update([]*shardactor.Entry{route.NewEntry(name, 1, 0, false, []shardactor.Target{target})}, nil)
	return x
}

// byName lets everybody in under the name that is the token.
type byName struct{}

func (byName) Authenticate(_, token string, _ time.Time) (sessioncore.Grants, *wire.Refusal) {
	return principalRights{name: token}, nil
}

type principalRights struct {
	rights
	name string
}

func (p principalRights) Subject() string { return p.name }

// decision 24: the second panic that a principal causes closes its connection.
func TestTheSecondShardThatAPrincipalMakesFailClosesItsConnection(t *testing.T) {
	x := breakable(t)
	as := func(c *memConn, name string) *line {
		a := today()
		a.Token = name
		return dial(t, c, a)
	}
	harmful := func(l *line) {
		t.Helper()
		l.raw(batchTo("broken", 1, wire.AckPerBatch, "a", "b"))
		if r := refused(t, l.next()); r.Code != wire.CodeUnacknowledged {
			t.Errorf("%+v", r)
		}
	}
	first, second, neighbour := x.connect(), x.connect(), x.connect()
	l, good := as(first, "mallory"), as(neighbour, "alice")
	for range 5 { // in the same turn as somebody else's, for all we know
		good.raw(batchTo("broken", 1, wire.AckPerBatch, "a"))
		good.next()
	}
	harmful(l)
	l.publish("orders", "once is nothing")
	harmful(good)
	good.publish("orders", "nor is it for others")
	m := as(second, "mallory")
	m.raw(batchTo("broken", 1, wire.AckPerBatch, "a", "b"))
	closedWith(t, second, CloseRepeatedFailure)
	if first.ctx.Err() != nil || neighbour.ctx.Err() != nil {
		t.Error("another connection was closed")
	}
	l.publish("orders", "the connection that did not do it again stays")
	if n := x.labels("felix_client_connections_closed_total")["felix_client_connections_closed_total repeated_failure"]; n != 1 {
		t.Errorf("%v closed connections were counted", n)
	}
	if n := x.metric("felix_requests_failed_shards_total"); n != 3 {
		t.Errorf("%v failures were counted", n)
	}
}

func TestOnlySoManySuspectsAreRemembered(t *testing.T) {
	s := NewSuspects()
	for i := range suspectsMost {
		if s.again(tenant, fmt.Sprint(i)) {
			t.Fatalf("%d is suspected for the first time", i)
		}
	}
	if !s.again(tenant, "0") || !s.again(tenant, fmt.Sprint(suspectsMost-1)) || s.again("t2", "0") {
		t.Error("a principal is not known by tenant and name")
	}
	if s.again(tenant, "0") { // the one of the other tenant took its place
		t.Error("the oldest was not forgotten")
	}
	if len(s.known) != suspectsMost || len(s.order) != suspectsMost {
		t.Errorf("%d and %d are remembered", len(s.known), len(s.order))
	}
}
