package route

import (
	"testing"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func TestWhatRunningShardsCanFollowIsTheSameHosting(t *testing.T) {
	base := Assignment{Name: name(Stream, "orders"), Incarnation: 7, Generation: 1, Shards: 2, Durable: true}
	live := base
	live.Logs, live.Retention, live.Compress = string(make([]byte, 32)), Retention{Bytes: 1, Age: time.Second}, true
	if !base.SameHosting(live) || !live.SameHosting(base) {
		t.Fatal("logs, retention and compression stop running shards")
	}
	for what, change := range map[string]func(*Assignment){
		"name":        func(a *Assignment) { a.Name.Kind = Cache },
		"incarnation": func(a *Assignment) { a.Incarnation = 8 },
		"generation":  func(a *Assignment) { a.Generation = 2 },
		"shards":      func(a *Assignment) { a.Shards = 3 },
		"routing":     func(a *Assignment) { a.Routing = wire.RoutingJumpHash },
		"durable":     func(a *Assignment) { a.Durable = false },
	} {
		other := base
		if change(&other); base.SameHosting(other) || other.SameHosting(base) {
			t.Errorf("another %s is taken for the same hosting", what)
		}
	}
}

func TestAShardWithoutAReportedLogHasTheZeroID(t *testing.T) {
	one := id.LogID{1, 2, 3}
	a := Assignment{Shards: 3, Logs: string(make([]byte, 16)) + string(one[:])}
	for n, want := range []id.LogID{{}, one, {}} {
		if got := a.Log(uint32(n)); got != want {
			t.Errorf("shard %d: log %s, want %s", n, got, want)
		}
	}
	if got := (Assignment{Shards: 1}).Log(1<<32 - 1); !got.IsZero() {
		t.Errorf("without any log: %s", got)
	}
}
