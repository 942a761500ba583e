package sessionactor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
)

// shardOf is a shard of a stream.
func (x *site) shardOf(name string, shard uint32) *shardactor.Handle {
	x.t.Helper()
	target, ok := x.opts.Table.Get(route.Name{Kind: route.Stream, Tenant: tenant, Namespace: namespace, Name: name}).Shard(shard)
	if !ok || target.State != route.Local {
		x.t.Fatalf("%s has no shard %d here", name, shard)
	}
	return target.Shard
}

// pause makes the first shard of some streams stand still, each until it is healed.
func (x *site) pause(names ...string) {
	x.t.Helper()
	for _, name := range names {
		if err := x.sys.Faults().Pause(x.shardOf(name, 0).Ref.Path(), 10*time.Minute); err != nil {
			x.t.Fatal(err)
		}
	}
}

func (x *site) heal(names ...string) {
	x.t.Helper()
	for _, name := range names {
		if err := x.sys.Faults().Heal(x.shardOf(name, 0).Ref.Path()); err != nil {
			x.t.Fatal(err)
		}
	}
}

// counts waits until a metric has a value.
func (x *site) counts(name string, value float64) {
	x.t.Helper()
	var got float64
	eventually(x.t, name+" has its value", func() bool { got = x.metric(name); return got == value })
	if got != value {
		x.t.Fatalf("%s is %v, want %v", name, got, value)
	}
}

// acks reads the answers to requests from..to, which must be in order. It returns how many were done; all others must have been refused
// for want of room.
func (l *line) acks(from, to uint64) (done int) {
	l.t.Helper()
	for i := from; i < to; i++ {
		f := l.next()
		if f.ack.RequestID != i {
			l.t.Fatalf("answer %d names request %d", i, f.ack.RequestID)
		}
		if f.ack.Refusal == nil {
			done++
			continue
		}
		if r := refused(l.t, f); r.Code != wire.CodeOverloaded || r.Retry != wire.RetryAfter || r.Reason != wire.ReasonPublishQueueFull || r.RetryAfterMS != queueFullPause {
			l.t.Fatalf("answer %d: %+v", i, r)
		}
	}
	return done
}

// streams are streams of one shard each.
func streams(names ...string) (list []route.Assignment) {
	for _, name := range names {
		list = append(list, stream(name, 1))
	}
	return list
}

// watched is a Runtime that counts how often each gate was rung, in the order in which they were made, knows how many pumps stand at
// theirs, and can make one panic there.
type watched struct {
	Runtime
	mu       sync.Mutex
	rung     []*atomic.Int64
	standing atomic.Int64
	wreck    atomic.Bool
}

func (w *watched) NewGate() Gate {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := &watchedGate{Gate: w.Runtime.NewGate(), of: w}
	w.rung = append(w.rung, &g.rung)
	return g
}

// rings is how often each gate was rung so far.
func (w *watched) rings() (n []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.rung {
		n = append(n, r.Load())
	}
	return n
}

// stand waits until so many pumps stand at their gates. A publish is counted as one that waits before it has its place in a line, where its
// pump stands then.
func (w *watched) stand(t testing.TB, pumps int) {
	t.Helper()
	eventually(t, fmt.Sprint(pumps, " pumps stand at their gates"), func() bool { return w.standing.Load() == int64(pumps) })
}

type watchedGate struct {
	Gate
	of   *watched
	rung atomic.Int64
}

func (g *watchedGate) Ring() {
	g.rung.Add(1)
	g.Gate.Ring()
}

func (g *watchedGate) Wait(until ...context.Context) bool {
	g.of.standing.Add(1)
	ok := g.Gate.Wait(until...)
	g.of.standing.Add(-1)
	if g.of.wreck.CompareAndSwap(true, false) {
		panic("wrecked")
	}
	return ok
}
