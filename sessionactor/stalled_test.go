package sessionactor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
)

// diskClock makes a manual clock one of a disk's.
type diskClock struct{ *actors.ManualClock }

func (c diskClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return c.ManualClock.AfterFunc(d, f).Stop
}

// What a hanging disk is not needed for goes on for as long as it hangs: gets of what is in memory, of counters too, and watches, which are
// told nothing that is not stored. What it is needed for is refused at once and does not wait in the place of others.
//
// matrix E8
func TestGetsOfWhatIsInMemoryGoOnWhileTheDiskHangs(t *testing.T) {
	clock, d := manual(), newSiteDisk()
	d.clock, d.inline = diskClock{clock}, 100
	x := d.caching(t, setting{})
	l := dial(t, x.connect(), today())
	l.put("users", "k", "v")
	l.put("users", "long", strings.Repeat("v", 101))
	l.ask(addTo("users", "n", 7))

	hang := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Match: func(name string) bool { return strings.Contains(name, "users") }, Block: true})
	defer d.fault.Set(nil)
	writer := dial(t, x.connect(), today())
	writer.send(putTo("users", "k", "new"))
	<-hang.Reached()
	h := x.cacheShard(t, "users", 0)
	first, _ := h.Log.Bounds()
	clock.Advance(diskpool.StallAfter + time.Second)
	eventually(t, "the shard waits for its disk", func() bool { return !h.Serving() })

	c := x.connect()
	l = dial(t, c, today())
	if m, is := l.ask(getFrom("users", "k")).message.(*wire.CacheValue); !is || string(m.Value.V) != "v" || m.Version != wire.Some(uint64(first)) {
		t.Errorf("a get of what is in memory was answered %+v", m)
	}
	if m, is := l.ask(getFrom("users", "never")).message.(*wire.CacheValue); !is || m.Value.Set {
		t.Errorf("a get of what is not there was answered %+v", m)
	}
	if m, is := l.ask(&wire.CounterGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "n", RequestID: 2}).message.(*wire.CounterValue); !is || m.Value != wire.Some(int64(7)) {
		t.Errorf("a get of a counter was answered %+v", m)
	}
	if f := refused(t, l.ask(getFrom("users", "long"))); f.Code != wire.CodeShardUnavailable || f.Reason != wire.ReasonNotReady || f.Retry != wire.RetryRetry {
		t.Errorf("a get of what is in the log was answered %+v", f)
	}
	w := l.watch(c, watchOf("users", ofKey("k"), retained))
	w.expect(fmt.Sprintf("k=v at %d", first))

	hang.Release()
	hang.Remove()
	w.expect(fmt.Sprintf("k=new at %d", first+2))
	if f := writer.next(); string(f.payload) != `{"type":"cache_ok","request_id":1}` {
		t.Errorf("the put that waited was answered %s", f.payload)
	}
	eventually(t, "the shard goes on", h.Serving)
	l.put("users", "k", "newer")
	if m, is := l.ask(getFrom("users", "long")).message.(*wire.CacheValue); !is || len(m.Value.V) != 101 {
		t.Errorf("afterwards a get of what is in the log was answered %+v", m)
	}
}
