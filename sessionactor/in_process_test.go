package sessionactor

import (
	"os"
	"strings"
	"testing"

	"github.com/felixd/felixd/wire"
)

// sockets is how many this process has open; false where that cannot be told.
func sockets() (n int, ok bool) {
	const open = "/proc/self/fd"
	list, err := os.ReadDir(open)
	for _, f := range list {
		if to, err := os.Readlink(open + "/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n, err == nil
}

// The core of a broker runs in one process with its clients, with everything that it is made of: sessions, shards, logs, a disk in memory. One
// publishes to streams of both kinds and puts, another is told, and not a single socket is there.
//
// mission 335
func TestABrokersCoreServesItsProcessWithoutASocket(t *testing.T) {
	before, _ := sockets() // that it was started with
	x := newSiteDisk().caching(t, setting{})
	publisher, reader := x.connect(), x.connect()
	p, r := dial(t, publisher, today()), dial(t, reader, today())
	events := r.subscribe(reader, subscribeTo("orders", wire.StartLatest))
	changes := r.watch(reader, watchOf("users", ofKey("k")))
	p.publish("orders", "one", "two")
	if got, _, _ := events.events(2); got[0] != "one" || got[1] != "two" {
		t.Errorf("the subscriber got %q", got)
	}
	p.put("users", "k", "v")
	if e, ok := changes.next().message.(*wire.CacheEvent); !ok || string(e.Value.V) != "v" {
		t.Errorf("the watch was told %+v", e)
	}
	if n, ok := sockets(); ok && n > before {
		t.Errorf("%d sockets were opened", n-before)
	}
}
