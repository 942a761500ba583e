package sessionactor

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/wire"
)

// hoard makes a value of which an answer takes 64 KiB, and returns how to ask for it.
func (x *site) hoard(l *line) func(id uint64) wire.Message {
	x.t.Helper()
	value := bytes.Repeat([]byte("v"), 48<<10)
	if f := l.ask(&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", Value: value}); f.message.MessageType() != "ok" {
		x.t.Fatalf("put: %q", f.payload)
	}
	return func(id uint64) wire.Message {
		return &wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", RequestID: wire.Some(id)}
	}
}

// narrow lets a client's streams take little before it reads.
func narrow(c *memConn) { c.window = 4 << 10 }

// Once half of the budget is used, streams whose clients do not read are not read either; nobody is ended, and everything that was asked
// for is answered once the clients read.
func TestHalfTheBudgetOfUnreadAnswersHoldsBackThoseWhoDoNotRead(t *testing.T) {
	const lanes, each, answer = 6, 10, 64 << 10
	x := open(t, setting{change: func(o *Options) { o.Answers = NewAnswers(2 << 20) }})
	c := x.connect(narrow)
	good := dial(t, x.connect(), today())
	ask := x.hoard(good)
	var lines []*line
	var writing sync.WaitGroup
	for range lanes {
		l := dial(t, c, today())
		lines = append(lines, l)
		writing.Go(func() {
			for i := range uint64(each) {
				l.send(ask(i))
			}
		})
	}
	eventually(t, "half of the budget is used", func() bool { return x.opts.Answers.Used() > 1<<20 })
	for i := range uint64(20) { // who reads is answered as ever
		if f := good.ask(ask(i)); f.message.MessageType() != "cache_value" {
			t.Fatalf("answered %q", f.payload)
		}
	}
	if used := x.opts.Answers.Used(); used > 1<<20+(lanes+1)*(answer+2*owedStep) {
		t.Errorf("%d bytes wait: those who do not read were read on", used)
	}
	for _, l := range lines {
		for i := range uint64(each) {
			if v, ok := l.next().message.(*wire.CacheValue); !ok || v.RequestID.V != i {
				t.Fatalf("answer %d: %+v", i, v)
			}
		}
	}
	writing.Wait()
	eventually(t, "nothing waits", func() bool { return x.opts.Answers.Used() == 0 })
	if n := x.metric("felix_client_streams_refused_total"); n != 0 {
		t.Errorf("%v streams were ended", n)
	}
}

// What waits for clients that do not read is bounded for the whole node: the connection that has most of it loses its largest stream,
// for a reason that is counted; who reads notices nothing of it, and who owes less loses nothing.
func TestUnreadAnswersAreBoundedForTheNodeAndTheWorstGoes(t *testing.T) {
	const limit, answer = 1 << 20, 64 << 10
	x := open(t, setting{change: func(o *Options) { o.Answers = NewAnswers(limit) }})
	good, modest := dial(t, x.connect(), today()), dial(t, x.connect(narrow), today())
	ask := x.hoard(good)
	modest.send(ask(7))
	eventually(t, "the modest one owes an answer", func() bool { return x.opts.Answers.Used() > 0 })
	// A removal is answered with what was removed. While the shard stands still there is no answer, so nobody is held back.
	key := func(i uint64) string { return fmt.Sprint("key ", i) }
	const most, some = 16, 8
	for i := range uint64(most + some) {
		good.ask(&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: key(i), Value: bytes.Repeat([]byte("v"), 48<<10)})
	}
	greedy := x.connect(narrow)
	worst, other := dial(t, greedy, today()), dial(t, greedy, today())
	entered := x.sabotage.hold("users/0")
	for i := range uint64(most + some) {
		l := worst
		if i >= most {
			l = other
		}
		l.send(&wire.CacheDelete{TenantID: tenant, Namespace: namespace, Cache: "users", Key: key(i), RequestID: wire.Some(i)})
		if i == 0 {
			want(t, entered, "the shard to stand still")
		}
	}
	eventually(t, "all are read", func() bool { return worst.w.unread() == 0 && other.w.unread() == 0 })
	x.sabotage.release()
	eventually(t, "a stream is ended, and counted", func() bool {
		return x.labels("felix_client_streams_refused_total")["felix_client_streams_refused_total answers_unread"] == 1
	})
	if err := worst.drainAnswers(); !errors.Is(err, errReset) {
		t.Errorf("the worst stream ended with %v, want it broken off", err)
	}
	if used := x.opts.Answers.Used(); used > limit+answer {
		t.Errorf("%d bytes wait, the limit is %d", used, limit)
	}
	if f := good.ask(ask(1)); f.message.MessageType() != "cache_value" {
		t.Errorf("who reads was answered %q", f.payload)
	}
	for i := range uint64(some) {
		if v, ok := other.next().message.(*wire.CacheValue); !ok || v.RequestID.V != most+i || !v.Value.Set {
			t.Errorf("another stream of the same connection got %+v", v)
		}
	}
	if v, ok := modest.next().message.(*wire.CacheValue); !ok || v.RequestID.V != 7 {
		t.Errorf("the modest one got %+v", v)
	}
	if greedy.ctx.Err() != nil {
		t.Error("the connection was closed for it")
	}
	eventually(t, "nothing waits", func() bool { return x.opts.Answers.Used() == 0 })
}

// owing is a budget and lanes without streams.
type owing struct {
	a     *Answers
	lanes []*lane
}

func newOwing(limit int, lanesOf ...int) *owing {
	o := &owing{a: NewAnswers(limit)}
	for _, n := range lanesOf {
		s := &session{}
		for range n {
			o.lanes = append(o.lanes, &lane{session: s})
		}
	}
	return o
}

func TestTheLargestStreamOfTheConnectionThatOwesMostGoes(t *testing.T) {
	o := newOwing(100*owedStep, 1, 3)
	for i, steps := range []int{40, 20, 31, 9} { // 40 of the first connection, 60 of the second
		if worst := o.a.book(o.lanes[i], steps*owedStep); worst != nil {
			t.Fatal("somebody was ended within the budget")
		}
	}
	if worst := o.a.book(o.lanes[3], 10*owedStep); !slices.Equal(worst, o.lanes[2:3]) {
		t.Error("not the largest of the connection that owes most was chosen")
	}
	if o.a.book(o.lanes[3], 40*owedStep) != nil {
		t.Error("what the chosen one owes counts although it is about to go")
	}
	if worst := o.a.book(o.lanes[3], 41*owedStep); !slices.Equal(worst, o.lanes[3:4]) {
		t.Error("the next one was not chosen")
	}
	for _, l := range o.lanes {
		if o.a.book(l, 0) != nil {
			t.Error("somebody is ended although all have paid")
		}
	}
	if o.a.Used() != 0 || o.a.staying != 0 || len(o.a.sessions) != 0 {
		t.Errorf("%d bytes and %d sessions are in the books", o.a.Used(), len(o.a.sessions))
	}
}

func TestTheBooksOfUnreadAnswersAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(16, 64).Draw(t, "limit") * owedStep
		o := newOwing(limit, 2, 1, 3)
		gone := map[*lane]bool{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			l := o.lanes[rapid.IntRange(0, len(o.lanes)-1).Draw(t, "lane")]
			n := rapid.IntRange(0, 20*owedStep).Draw(t, "owes")
			if gone[l] { // what is ended pays everything
				n = 0
			}
			for _, worst := range o.a.book(l, n) {
				if gone[worst] {
					t.Fatal("one was chosen twice")
				}
				gone[worst] = true
			}
			used, staying := 0, 0
			for _, l := range o.lanes {
				used += l.debt.bytes
				if !gone[l] {
					staying += l.debt.bytes
				}
			}
			if int(o.a.Used()) != used || o.a.staying != staying || staying > limit {
				t.Fatalf("the books say %d and %d, it is %d and %d of %d", o.a.Used(), o.a.staying, used, staying, limit)
			}
		}
	})
}
