package sessionactor

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
)

// padded is a message in a frame that is longer by so many bytes than it need be.
func padded(m wire.Message, more int) []byte {
	f := wire.AppendJSONFrame(nil, m)
	payload := append(bytes.Repeat([]byte(" "), more), f[wire.HeaderSize:]...)
	return append(binary.BigEndian.AppendUint32(slices.Clone(f[:wire.HeaderSize-4]), uint32(len(payload))), payload...)
}

func timeOf(requestID uint64) *wire.OffsetForTime {
	return &wire.OffsetForTime{TenantID: tenant, Namespace: namespace, Stream: "orders", AtMicros: 1, RequestID: requestID}
}

// shelved starts a site with "orders", durable, and "users", a cache on disk whose values are read from there, and with "wide" and "temp" in
// memory. Something is in each.
func shelved(t *testing.T, change func(*Options)) (*site, *siteDisk) {
	orders, users := stream("orders", 1), cache("users", 1)
	orders.Durable, users.Durable = true, true
	d := newSiteDisk()
	d.inline = 1
	desired := []route.Assignment{orders, stream("wide", 4), users, cache("temp", 1)}
	x := d.serving(t, setting{disk: d, desired: desired, ringBatches: 1, change: func(o *Options) {
		o.Offer = DurableOffer()
		o.ReadWait = 0 // a disk that hangs does so for as long as the test wants
		change(o)
	}})
	l := dial(t, x.connect(), today())
	for _, v := range []string{"a", "b"} {
		l.publish("orders", v)
		l.put("users", v, "a value that is not kept in memory")
		l.put("temp", v, v)
	}
	return x, d
}

// hangs makes the reads of the disk wait until resume.
func (d *siteDisk) hangs() (reached <-chan struct{}, resume func()) {
	r := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRead}, Block: true})
	return r.Reached(), r.Remove
}

// However many reads wait for a disk that hangs, and however long their frames were, they hold nothing of what frames need, of their
// connection's and of the node's: who publishes, puts or finds a value in memory there or elsewhere finds all of it.
func TestReadsThatWaitForADiskKeepNobodyOut(t *testing.T) {
	const bound, lanes, each = 32 << 10, 3, 20
	x, d := shelved(t, func(o *Options) { o.Frames, o.ConnBytes = actors.NewCredit(1, bound), bound })
	reached, resume := d.hangs()
	defer resume()
	c := x.connect()
	var lines []*line
	for range lanes {
		l := dial(t, c, today())
		for n := range uint64(each) {
			for _, m := range []wire.Message{readFrom(0, n), timeOf(n), getFrom("users", "a")} {
				l.raw(padded(m, 4<<10))
			}
		}
		lines = append(lines, l)
	}
	want(t, reached, "the disk hangs")
	for _, conn := range []*memConn{c, x.connect()} {
		l := dial(t, conn, today())
		l.publish("wide", "a")
		l.put("temp", "k", "v")
		if m, ok := l.ask(getFrom("temp", "a")).message.(*wire.CacheValue); !ok || string(m.Value.V) != "a" {
			t.Errorf("a value in memory was answered %+v", m)
		}
	}
	resume()
	for _, l := range lines {
		for n := range uint64(each) {
			if m, ok := l.next().message.(*wire.StreamRecords); !ok || m.RequestID != n || len(m.Records) != 2 {
				t.Fatalf("read %d was answered %+v", n, m)
			}
			if m, ok := l.next().message.(*wire.OffsetValue); !ok || m.RequestID != n {
				t.Fatalf("time %d was answered %+v", n, m)
			}
			if m, ok := l.next().message.(*wire.CacheValue); !ok || !m.Value.Set {
				t.Fatalf("get %d was answered %+v", n, m)
			}
		}
	}
	x.balanced()
}

// parked sees that n requests wait, with what they are counted with.
func (x *site) parked(n, bytes int) {
	x.t.Helper()
	eventually(x.t, "the requests wait", func() bool {
		return x.metric("felix_parked_requests") == float64(n) && x.metric("felix_parked_request_bytes") == float64(bytes) && x.opts.Parked.Used() == bytes
	})
}

// What is sent behind a read that waits for the disk may wait as long as that: subscribes and watches hold nothing that frames need then.
func TestSubscribesBehindAReadThatWaitsKeepNobodyOut(t *testing.T) {
	const bound, each = 32 << 10, 10
	x, d := shelved(t, func(o *Options) { o.Frames, o.ConnBytes = actors.NewCredit(1, bound), bound })
	reached, resume := d.hangs()
	defer resume()
	c := x.connect()
	l := dial(t, c, today())
	l.send(getFrom("users", "a"))
	for range each {
		l.raw(padded(subscribeTo("wide", wire.StartLatest), 4<<10))
		l.raw(padded(watchOf("users", ofKey("a")), 4<<10))
	}
	want(t, reached, "the disk hangs")
	x.parked(1+2*each, readHeld+len("t1defaultusersa")+each*(subscribeHeld+len("t1defaultwide")+subscribeHeld+len("t1defaultusersa")))
	dial(t, c, today()).publish("wide", "a")
	dial(t, x.connect(), today()).put("temp", "k", "v")
	resume()
	l.next()
	for range each {
		if f := l.next(); f.message.MessageType() != "subscribed" {
			t.Fatalf("the subscribe was answered %s", f.payload)
		}
		if f := l.next(); f.message.MessageType() != "cache_watch_started" {
			t.Fatalf("the watch was answered %s", f.payload)
		}
	}
	x.parked(0, 0)
}

// oneRead is what a read of an offset is counted with.
const oneRead = readHeld + len("t1defaultorders")

// cramped makes a site with room for so many waiting reads of a connection, of a tenant's share, and of the node.
func cramped(t *testing.T, conn, share, node int) (*site, *siteDisk) {
	return shelved(t, func(o *Options) {
		o.Parked = NewParked(sessioncore.ParkLimits{Conn: conn * oneRead, Tenant: share * oneRead, Node: node * oneRead})
	})
}

// noRoomForRead checks that a request is told to come again after a pause, and that what needs no disk is done.
func (l *line) noRoomForRead(m wire.Message) {
	l.t.Helper()
	r := refused(l.t, l.ask(m))
	if r.Code != wire.CodeOverloaded || r.Retry != wire.RetryAfter || r.RetryAfterMS == 0 || r.Reason != wire.ReasonRequestsWaiting {
		l.t.Errorf("%T was refused %+v", m, r)
	}
	if got, ok := l.ask(getFrom("temp", "a")).message.(*wire.CacheValue); !ok || !got.Value.Set {
		l.t.Errorf("a value in memory was answered %+v", got)
	}
}

// One connection has its bound of reads that wait; one more is refused by type, of whatever kind, and the connection goes on. Another connection
// has its own, and what is answered makes room again.
func TestAConnectionWithItsBoundOfWaitingReadsIsToldToComeAgain(t *testing.T) {
	const most = 5
	x, d := cramped(t, most, 4*most, 4*most)
	reached, resume := d.hangs()
	defer resume()
	c := x.connect()
	waiter, l := dial(t, c, today()), dial(t, c, today())
	for n := range uint64(most) {
		waiter.send(timeOf(n))
	}
	want(t, reached, "the disk hangs")
	x.parked(most, most*oneRead)
	reads := []wire.Message{readFrom(0, 1), timeOf(1), getFrom("users", "a")}
	for _, m := range append(reads, subscribeTo("wide", wire.StartLatest), watchOf("users", ofKey("a"))) {
		l.noRoomForRead(m)
	}
	if n := x.metric("felix_requests_refused_total"); n != 5 {
		t.Errorf("%v refused requests were counted", n)
	}
	other := dial(t, x.connect(), today())
	other.send(readFrom(0, 1))
	x.parked(most+1, (most+1)*oneRead)
	resume()
	for n := range uint64(most) {
		if m, ok := waiter.next().message.(*wire.OffsetValue); !ok || m.RequestID != n {
			t.Errorf("read %d was answered %+v", n, m)
		}
	}
	if m, ok := other.next().message.(*wire.StreamRecords); !ok || len(m.Records) != 2 {
		t.Errorf("the read of another connection was answered %+v", m)
	}
	x.parked(0, 0)
	if m, ok := l.ask(readFrom(0, 1)).message.(*wire.StreamRecords); !ok || len(m.Records) != 2 {
		t.Errorf("a read later was answered %+v", m)
	}
}

// The reads of one tenant leave the last share of the node's room to others. The site has one tenant, so nobody takes it here.
func TestATenantWhoseWaitingReadsFillTheNodeIsToldToComeAgain(t *testing.T) {
	x, d := cramped(t, 4, 2, 10)
	_, resume := d.hangs()
	defer resume()
	var lines []*line
	for range 2 {
		l := dial(t, x.connect(), today())
		for n := range uint64(4) {
			l.send(readFrom(0, n))
		}
		lines = append(lines, l)
	}
	x.parked(8, 8*oneRead)
	dial(t, x.connect(), today()).noRoomForRead(readFrom(0, 1))
	resume()
	for _, l := range lines {
		for range 4 {
			l.next()
		}
	}
	x.parked(0, 0)
}

// What reads hold comes back however they end: by their records, by a refusal of the disk, by the end of their stream, connection or
// shard.
func TestWhatWaitingReadsHoldComesBackHoweverTheyEnd(t *testing.T) {
	x, log := durable(t, setting{})
	none := func(what string) {
		t.Helper()
		eventually(t, what, func() bool { return x.opts.Parked.Used() == 0 && x.metric("felix_parked_requests") == 0 })
		if n := len(x.opts.Parked.tenants); n != 0 {
			t.Errorf("%s: %d tenants are remembered", what, n)
		}
		x.balanced()
	}
	c := x.connect()
	l := dial(t, c, today())
	l.publish("orders", "a")
	l.ask(readFrom(0, 1))
	none("it was answered")
	log.fail(errDisk)
	refused(t, l.ask(readFrom(0, 1)))
	none("the disk failed")
	log.fail(nil)
	l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	refused(t, l.ask(subscribeTo("nowhere", wire.StartLatest)))
	none("a subscription began")
	for _, end := range []struct {
		what string
		do   func(*memConn, *line)
	}{
		{"its stream is gone", func(_ *memConn, l *line) { l.w.CancelWrite() }},
		{"its connection is gone", func(c *memConn, _ *line) { c.leave() }},
		{"its shard is gone", func(*memConn, *line) { x.desire(streams("wide")...) }},
	} {
		entered, resume := log.stall()
		c = x.connect()
		l = dial(t, c, today())
		for n := range uint64(3) {
			l.send(readFrom(0, n))
			l.send(subscribeTo("orders", wire.StartLatest))
		}
		want(t, entered, "the read waits")
		x.parked(6, 3*oneRead+3*(subscribeHeld+len("t1defaultorders")))
		if end.do(c, l); end.what == "its shard is gone" {
			resume()
			for range 6 {
				refused(t, l.next())
			}
		}
		none(end.what) // where the client has gone, with the disk still not answering
		resume()
	}
}

// A read that waits costs what it is counted with.
func TestAThousandWaitingReadsCostLittle(t *testing.T) {
	for name, m := range map[string]func(n uint64) wire.Message{
		"stream_read":     func(n uint64) wire.Message { return readFrom(0, n) },
		"offset_for_time": func(n uint64) wire.Message { return timeOf(n) },
		"cache_get":       func(uint64) wire.Message { return getFrom("users", "a") },
	} {
		t.Run(name, func(t *testing.T) {
			x, d := shelved(t, func(*Options) {})
			_, resume := d.hangs()
			defer resume()
			c := x.connect()
			const lanes, each = 16, 65 // the ring of a stream has just grown from 64
			var list []*line
			for range lanes {
				l := dial(t, c, today())
				list = append(list, l)
				l.send(m(0))
			}
			eventually(t, "each lane has one", func() bool { return x.metric("felix_parked_requests") == lanes })
			memory := memoryInUse()
			for _, l := range list {
				for n := range uint64(each - 1) {
					l.send(m(1 + n))
				}
			}
			eventually(t, "the reads wait", func() bool { return x.metric("felix_parked_requests") == lanes*each })
			per := (memoryInUse() - memory) / (lanes * (each - 1))
			t.Logf("a read that waits: %d bytes", per)
			if counted := int64(readHeld + len("t1defaultorders")); per > counted && poolSlack == 0 {
				t.Errorf("a read that waits costs %d bytes and is counted with %d", per, counted)
			}
			resume()
			for _, l := range list {
				for range each {
					l.next()
				}
			}
			x.parked(0, 0)
		})
	}
}
