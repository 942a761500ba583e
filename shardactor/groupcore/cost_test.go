package groupcore

import (
	"testing"
	"time"

	"github.com/felixd/felixd/wire/id"
)

// work is a group driven without a harness: a poll for 64 records that are read, and an ack for each of them, all in one turn, as a worker
// does it that keeps up. It returns how many records were handed out.
func work(c *Core, p *Poll, ack *Ack, now time.Duration, next id.Offset, found []bool) (handed int) {
	c.Step(now, Tail{End: next + 64, Committed: next + 64})
	c.Step(now, p)
	for _, e := range c.Take() {
		switch e := e.(type) {
		case *Fetch:
			c.Step(now, Read{Poll: e.Poll, Found: found[:len(e.Offsets)]})
		case *Persist:
			c.Step(now, Persisted{Seq: e.Seq})
		}
	}
	for _, e := range c.Take() {
		switch e := e.(type) {
		case *Deliver:
			handed += len(e.Records)
			for _, h := range e.Records {
				ack.Offset = h.Offset
				c.Step(now, ack)
			}
		case *Persist:
			c.Step(now, Persisted{Seq: e.Seq})
		}
	}
	for range 2 {
		for _, e := range c.Take() {
			if e, ok := e.(*Persist); ok {
				c.Step(now, Persisted{Seq: e.Seq})
			}
		}
	}
	return handed
}

func newWork() (*Core, *Poll, []bool) {
	found := make([]bool, 64)
	for i := range found {
		found[i] = true
	}
	return New(DefaultOptions("orders"), 0, Loaded{}), &Poll{Conn: 1, Max: 64}, found
}

// A poll for 64 records and an ack for each cost, in memory that is not used again, three writes, which belong to the shell, and the few
// inputs that are no pointers.
func TestPollsAndAcksAllocateOnlyWhatLeavesTheCore(t *testing.T) {
	c, p, found := newWork()
	next, ack := id.Offset(0), Ack{}
	round := func() {
		if n := work(c, p, &ack, 0, next, found); n != 64 {
			t.Fatalf("%d records", n)
		}
		next += 64
	}
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(200, round); n > 10 {
		t.Errorf("%.1f allocations for a poll of 64 and 64 acks", n)
	}
	if got := c.Info(); got.Cursor != next {
		t.Errorf("cursor %d, not %d", got.Cursor, next)
	}
}

// Expected: a microsecond or two for each record, all of it memory and maps; half of what the budget of an ack (0.25 of an acked publish at
// some 200,000 a second) leaves for everything.
func BenchmarkPoll64AckEach(b *testing.B) {
	c, p, found := newWork()
	ack := Ack{}
	b.ReportAllocs()
	for i := range b.N {
		if n := work(c, p, &ack, 0, id.Offset(i)*64, found); n != 64 {
			b.Fatalf("%d records", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(64*b.N), "ns/record")
}

// The other end: 10,000 in flight, acks in an order that makes as many ranges as there can be.
func BenchmarkAckScatteredInTenThousand(b *testing.B) {
	found := make([]bool, 1000)
	for i := range found {
		found[i] = true
	}
	ack := Ack{}
	for b.Loop() {
		b.StopTimer()
		c := New(DefaultOptions("orders"), 0, Loaded{Tail: Tail{End: 10_000, Committed: 10_000}})
		for range 10 {
			c.Step(0, &Poll{Conn: 1, Max: 1000})
			for _, e := range c.Take() {
				switch e := e.(type) {
				case *Fetch:
					c.Step(0, Read{Poll: e.Poll, Found: found})
				case *Persist:
					c.Step(0, Persisted{Seq: e.Seq})
				}
			}
		}
		b.StartTimer()
		for o := range id.Offset(10_000) {
			ack.Offset = (o * 7919) % 10_000
			c.Step(0, &ack)
			if o%64 == 0 {
				for _, e := range c.Take() {
					if e, ok := e.(*Persist); ok {
						c.Step(0, Persisted{Seq: e.Seq})
					}
				}
			}
		}
		if len(c.play.all) > 0 {
			b.Fatal("something is in play")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(10_000*b.N), "ns/ack")
}

// mission 347: 10,000 waiting polls of ten connections are a few MiB, and wake nobody.
func TestTenThousandWaitingPollsAreSmallAndIdle(t *testing.T) {
	c := New(DefaultOptions("orders"), 0, Loaded{})
	for i := range 10_000 {
		c.Step(0, &Poll{Ask: Ask{Token: uint64(i)}, Conn: Conn(i % 10), Max: 64, Wait: 30 * time.Second})
	}
	deadlines := 0
	for _, e := range c.Take() {
		if _, ok := e.(Deadline); ok {
			deadlines++
		}
	}
	if deadlines > 2 {
		t.Errorf("%d deadlines", deadlines)
	}
	c.Step(30*time.Second, Wake{})
	if n := len(c.Take()); n < 10_000 {
		t.Errorf("%d answers", n)
	}
	if err := c.CheckAll(); err != nil {
		t.Error(err)
	}
}
