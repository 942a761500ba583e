// Package fair measures, in real time, what a tenant gets beside another that is busy: the real node, dispatcher, shards and logs,
// with publishers that send straight to the shards, so that nothing but the shards' executors is shared.
package fair

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

const (
	patience    = 2 * time.Minute
	recordBytes = 1 << 10
	manyShards  = 1000
	deep        = 60 // publishes each shard of the busy tenant has to do: more than a turn takes, which is 64 KiB
)

// house is a node with two tenants: "many" has a stream of a thousand shards, "one" a stream of one.
type house struct {
	t    testing.TB
	node *node.Node
	body wire.Region
	many []*publisher
	one  *shardactor.Handle
}

type nobody struct{}

func (nobody) Authenticate(string, string, time.Time) (sessioncore.Grants, *wire.Refusal) {
	f := wire.Refuse(wire.CodeUnauthenticated, "nobody signs in here")
	return nil, &f
}

func open(t testing.TB) *house {
	t.Helper()
	limits := node.DefaultLimits()
	limits.RingBatches = 4 // nobody reads
	applied := make(chan uint64, 1)
	n, err := node.New(node.Options{
		Clock: actors.RealClock(), Events: actors.DiscardEvents(), Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		Rand: func() uint64 { return 1 }, Limits: limits, Auth: nobody{}, Applied: func(v uint64) { applied <- v },
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, node: n, body: wire.AppendPayload(nil, make([]byte, recordBytes))}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := n.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	list := []route.Assignment{assignment("many", manyShards), assignment("one", 1)}
	n.Apply(route.Desired{Version: 1, Assignments: list})
	select {
	case <-applied:
	case <-time.After(patience):
		t.Fatal("the streams are not there")
	}
	for _, target := range n.Table.Get(list[0].Name).Shards() {
		h.many = append(h.many, &publisher{h: h, shard: target.Shard})
	}
	h.one = n.Table.Get(list[1].Name).Shards()[0].Shard
	return h
}

func assignment(tenant string, shards uint32) route.Assignment {
	return route.Assignment{Name: route.Name{Tenant: tenant, Namespace: "default", Name: "s"}, Incarnation: 1, Generation: 1, Shards: shards}
}

// publisher sends to one shard. With again it sends the next publish whenever one is answered.
type publisher struct {
	h       *house
	shard   *shardactor.Handle
	again   atomic.Bool
	sent    atomic.Int64
	done    atomic.Int64
	refused atomic.Int64
}

var _ shardactor.Reply = (*publisher)(nil)

// Answer implements shardactor.Reply.
func (p *publisher) Answer(_ shardcore.Token, a shardactor.Answer) {
	if a.Refusal != nil {
		p.refused.Add(1)
	}
	p.done.Add(1)
	if p.again.Load() {
		p.send()
	}
}

// Flush implements shardactor.Reply.
func (*publisher) Flush() {}

func (p *publisher) send() {
	m := &shardactor.Publish{Batch: batch.Batch{Count: 1, Kind: batch.Records, Body: p.h.body, PayloadBytes: recordBytes}}
	m.To(p, 0)
	p.sent.Add(1)
	if err := p.shard.Ref.TrySend(m, m.Batch.Size()); err != nil {
		p.refused.Add(1)
		p.done.Add(1)
	}
}

// settle waits until everything that was sent is answered.
func (p *publisher) settle() {
	p.h.t.Helper()
	deadline := time.NewTimer(patience)
	look := time.NewTicker(time.Millisecond)
	defer deadline.Stop()
	defer look.Stop()
	for p.done.Load() != p.sent.Load() {
		select {
		case <-look.C:
		case <-deadline.C:
			p.h.t.Fatalf("%d of %d publishes are answered", p.done.Load(), p.sent.Load())
		}
	}
}

// besideMany runs something while every one of the thousand shards has more to do than a turn takes. It returns how many publishes the
// busy tenant got done meanwhile.
func (h *house) besideMany(run func()) (theirs int64) {
	h.t.Helper()
	for _, p := range h.many {
		p.again.Store(true)
		for range deep {
			p.send()
		}
	}
	before := h.doneByMany()
	run()
	theirs = h.doneByMany() - before
	for _, p := range h.many {
		p.again.Store(false)
	}
	for _, p := range h.many {
		p.settle()
	}
	return theirs
}

func (h *house) doneByMany() (n int64) {
	for _, p := range h.many {
		n += p.done.Load()
	}
	return n
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
