package hostile

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/shardactor/route"
)

// What the broker under attack is made of. It is internal/testkit's, with streams whose shards can be made to compute.

const (
	tenant    = testkit.Tenant
	namespace = testkit.Namespace
	goodToken = testkit.Token
	busyKind  = "busy" // streams of this name prefix get slowed actors
)

// setup is what a test changes in its broker. Zeros are defaults.
type setup = testkit.Setup

// house is a broker's process, seen from a test.
type house struct{ *testkit.Broker }

// open starts a broker. When the test ends, the broker is stopped and must end in order, with nothing left over, having failed
// nowhere in between.
func open(t testing.TB, s setup) *house {
	t.Helper()
	if s.AuthTimeout == 0 {
		s.AuthTimeout = patience // who is slow here does not want to be
	}
	s.Resources = []testkit.Resource{
		{Name: "orders", Shards: 1}, {Name: "other", Shards: 1}, {Name: busyKind, Shards: 8}, {Name: "wide", Shards: 4}, {Name: "users", Shards: 1, Cache: true},
	}
	return &house{testkit.Start(t, s)}
}

// hooks add the command "busy <duration>" to the broker: shards of busyKind compute for so long at each turn from then on, those in a turn
// included.
func hooks() testkit.Hooks {
	var nanos atomic.Int64
	return testkit.Hooks{
		Wrap: func(name route.Name, _ uint32, a actors.Actor) actors.Actor {
			if name.Name == busyKind {
				return busyActor{a, &nanos}
			}
			return a
		},
		Perform: func(word, argument string) {
			if d, err := time.ParseDuration(argument); word == "busy" && err == nil {
				nanos.Store(int64(d))
			}
		},
	}
}

// busyActor computes at each turn for as long as it is told.
type busyActor struct {
	actors.Actor
	nanos *atomic.Int64
}

// Receive implements actors.Actor.
func (a busyActor) Receive(t *actors.Turn) {
	a.Actor.Receive(t)
	for began := time.Now(); time.Since(began) < time.Duration(a.nanos.Load()); { // computing, not waiting
	}
}
