package sessionactor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// A shard that fails answers each accepted request exactly once: what it had looked at as unknown, what waited as refused.
func TestAShardThatFailsLeavesNoRequestWithoutItsOneAnswer(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	l, watcher := dial(t, c, today()), dial(t, c, today())
	s := watcher.subscribe(c, subscribeTo("orders", wire.StartLatest))
	l.publish("orders", "before")
	s.events(1)

	entered := x.sabotage.hold("orders/0")
	l.raw(batchTo("orders", 0, wire.AckPerBatch, "stepped"))
	want(t, entered, "the shard to stand still")
	const n = 100 // two requests each: within the window of the stream
	for i := range uint64(n) {
		l.raw(batchTo("orders", i+1, wire.AckPerBatch, "queued"))
		l.raw(batchTo("orders", 0, wire.AckNone, "queued, nobody asks"))
	}
	eventually(t, "all are accepted", func() bool { return x.metric("felixd_actor_mailbox_items") == 2*n })
	x.sabotage.panicNext("orders/0")
	x.sabotage.release()

	// The request that was in the turn may have been done; the others were not looked at.
	if r := refused(t, l.next()); r.Code != wire.CodeUnacknowledged || r.Retry != wire.RetryOutcomeUnknown {
		t.Errorf("stepped: %+v", r)
	}
	for i := range uint64(n) {
		f := l.next()
		if r := refused(t, f); f.ack.RequestID != i+1 || r.Code != wire.CodeShardUnavailable || r.Retry != wire.RetryRetry || r.Reason != wire.ReasonNotReady {
			t.Fatalf("queued %d: %+v", i, f.ack)
		}
	}
	x.balanced() // permits back to zero, those of the silent ones too
	s.over()     // the contents are gone: the reader is told by the end of its stream

	eventually(t, "the shard is back", func() bool {
		l.raw(batchTo("orders", 7, wire.AckPerBatch, "after"))
		return l.next().ack.Refusal == nil
	})
	if n := x.metric("felix_shard_restarts_total"); n != 1 {
		t.Errorf("%v restarts were counted", n)
	}
	if c.ctx.Err() != nil {
		t.Error("the connection was closed for it")
	}
}

// poison is a Reply that breaks the shard that answers it.
type poison struct{}

func (poison) Answer(shardcore.Token, shardactor.Answer) { panic("poison") }
func (poison) Flush()                                    {}

// An answer that was given before the shard failed in the same turn leaves all the same.
func TestAnswersGivenBeforeAShardFailsInTheSameTurnLeave(t *testing.T) {
	x := open(t, setting{})
	l := dial(t, x.connect(), today())
	entered := x.sabotage.hold("orders/0")
	l.raw(batchTo("orders", 1, wire.AckPerBatch, "first"))
	want(t, entered, "the shard to stand still")
	l.raw(batchTo("orders", 2, wire.AckPerBatch, "second"))
	eventually(t, "the second is accepted", func() bool { return x.metric("felixd_actor_mailbox_items") == 1 })
	entry := x.opts.Table.Get(route.Name{Kind: route.Stream, Tenant: tenant, Namespace: namespace, Name: "orders"})
	target, _ := entry.Shard(0)
	m := &shardactor.Publish{Batch: batch.Batch{Count: 1, Kind: batch.Records, Body: wire.AppendPayload(nil, nil)}}
	m.To(poison{}, 1)
	if err := target.Shard.Ref.TrySend(m, shardactor.Size(m)); err != nil {
		t.Fatal(err)
	}
	x.sabotage.release()
	for i := range uint64(2) {
		if f := l.next(); f.ack.RequestID != i+1 || f.ack.Refusal != nil {
			t.Errorf("answer %d: %+v", i, f.ack)
		}
	}
}

func TestACacheWriteToAShardThatFailsIsAnsweredToo(t *testing.T) {
	x := open(t, setting{})
	l := dial(t, x.connect(), today())
	put := func(id uint64) wire.Message {
		return &wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", Value: []byte("v"), RequestID: wire.Some(id)}
	}
	l.ask(put(1))
	x.sabotage.panicNext("users/0")
	if r := refused(t, l.ask(put(2))); r.Code != wire.CodeUnacknowledged {
		t.Errorf("%+v", r)
	}
	get := &wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k"}
	eventually(t, "the cache is back, and empty", func() bool {
		v, ok := l.ask(get).message.(*wire.CacheValue)
		return ok && !v.Value.Set
	})
	l.ask(put(3))
	if v, ok := l.ask(get).message.(*wire.CacheValue); !ok || string(v.Value.V) != "v" {
		t.Errorf("got %+v", v)
	}
}

func TestAClientThatVanishesLeavesNoPermitBehind(t *testing.T) {
	for name, vanish := range map[string]func(c *memConn, l *line){
		"the connection ends":             func(c *memConn, _ *line) { c.leave() },
		"the stream is reset":             func(_ *memConn, l *line) { l.w.CancelWrite() },
		"nobody reads the answers":        func(_ *memConn, l *line) { l.h.CancelRead() },
		"the stream ends inside a frame":  func(_ *memConn, l *line) { l.raw([]byte("FLX1\x00\x01\x00\x09\x00\x00\x00\x64half")); _ = l.w.Close() },
		"the stream ends inside a header": func(_ *memConn, l *line) { l.raw([]byte("FLX1")); _ = l.w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			x := open(t, setting{})
			c := x.connect(func(c *memConn) { c.window = 8 << 10 })
			l := dial(t, c, today())
			entered := x.sabotage.hold("orders/0")
			for i := range uint64(100) {
				l.raw(batchTo("orders", i, wire.AckPerBatch, strings.Repeat("x", 100)))
			}
			want(t, entered, "the shard to stand still")
			eventually(t, "all are read", func() bool { return l.w.unread() == 0 })
			vanish(c, l)
			x.sabotage.release()
			x.balanced()
			dial(t, x.connect(), today()).publish("orders", "on")
		})
	}
}

// A client that finishes its half after its last request gets every answer, and then the end of the stream.
func TestAStreamFinishedByItsClientIsAnsweredAndFinished(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	entered := x.sabotage.hold("orders/0")
	for i := range uint64(3) {
		l.raw(batchTo("orders", i, wire.AckPerBatch, "x"))
	}
	if err := l.w.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, entered, "the shard to stand still")
	x.sabotage.release()
	for i := range uint64(3) {
		if f := l.next(); f.ack.RequestID != i || f.ack.Refusal != nil {
			t.Errorf("answer %d: %+v", i, f.ack)
		}
	}
	l.over()
}

func TestPublishOnlyStreamsArePublishedFromAndNeverAnswered(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	s := dial(t, c, today()).subscribe(c, subscribeTo("orders", wire.StartLatest))
	up := c.publishOnly()
	for _, b := range [][]byte{wire.AppendJSONFrame(nil, nothing()), batchTo("orders", 0, wire.AckNone, "a"), batchTo("none", 0, wire.AckNone, "lost"), batchTo("orders", 0, wire.AckNone, "b")} {
		if _, err := up.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if got, _, _ := s.events(2); strings.Join(got, "") != "ab" {
		t.Errorf("got %q", got)
	}
	if _, err := up.Write(batchTo("orders", 1, wire.AckPerBatch, "wants an answer")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stream is stopped", func() bool { _, err := up.Write([]byte{0}); return err == errStopped })
	if n := x.metric("felix_published_records_total"); n != 2 {
		t.Errorf("%v records were published", n)
	}
}

// A panic of a session's own goroutine costs its connection, and no other.
func TestAPumpThatPanicsCostsItsConnectionOnly(t *testing.T) {
	x := open(t, setting{change: func(o *Options) { o.Auth = explosive{} }})
	other := x.connect()
	l := dial(t, other, today())
	c := x.connect()
	bad := today()
	bad.Token = "boom"
	bare(t, c).send(bad)
	closedWith(t, c, CloseInternal)
	l.publish("orders", "on")
	eventually(t, "its session is gone", func() bool { return x.metric("felix_client_connections") == 1 })
}

type explosive struct{ gatekeeper }

func (e explosive) Authenticate(in, token string, now time.Time) (sessioncore.Grants, *wire.Refusal) {
	if token == "boom" {
		panic("boom")
	}
	return e.gatekeeper.Authenticate(in, token, now)
}

// brittle is a connection on which no event stream can be opened: the attempt waits, and then panics.
type brittle struct {
	*memConn
	asked, fail chan struct{}
}

func (b brittle) OpenSendStream(context.Context) (SendStream, error) {
	close(b.asked)
	<-b.fail
	panic("no stream")
}

// The stream it was asked for on takes nothing more by then, so that nobody else lets go of the request.
func TestASubscribeWhoseSubscriptionPanicsGivesItsPermitsBack(t *testing.T) {
	x := open(t, setting{})
	c := brittle{newMemConn(x.opts.Clock), make(chan struct{}), make(chan struct{})}
	x.conns = append(x.conns, c.memConn)
	x.acceptor.conns <- Conn(c)
	l := dial(t, c.memConn, today())
	l.send(subscribeTo("orders", wire.StartLatest))
	want(t, c.asked, "the broker to open the event stream")
	l.raw([]byte("no frame at all"))
	eventually(t, "the stream is not read any more", func() bool { return l.w.unread() < wire.HeaderSize })
	close(c.fail)
	closedWith(t, c.memConn, CloseInternal)
	x.balanced()
}
