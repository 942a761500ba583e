package durable

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/wire/id"
)

// shelf is a disk that holds batches.
type shelf struct {
	mu      sync.Mutex
	batches []*batch.Batch
	base    id.Offset
	trimmed bool
	reads   int
	fails   error
	lost    struct{ from, to id.Offset } // who was told of all below one after from, up to to, is not to go on there
}

func (s *shelf) Bounds() (base, durable, tail id.Offset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := s.base
	if n := len(s.batches); n > 0 {
		end = max(end, s.batches[n-1].End())
	}
	return s.base, end, end
}

func (s *shelf) Read(_ context.Context, from, end id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) ([]*batch.Batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.fails != nil {
		return dst[:0], s.fails
	}
	if from < s.base {
		return dst[:0], &disklog.TrimmedError{Requested: from, Oldest: s.base}
	}
	dst, bytes := dst[:0], 0
	for _, b := range s.batches {
		if b.End() <= from || b.Base >= end {
			continue
		}
		if bytes += len(b.Body); len(dst) == maxBatches || len(dst) > 0 && bytes > maxBytes {
			break
		}
		stored := *b
		stored.Framed, stored.Cut = nil, nil
		dst = append(dst, &stored)
	}
	return dst, nil
}

func (s *shelf) OffsetForTime(_ context.Context, micros uint64, end id.Offset) (id.Offset, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		if b.Base < end && b.AppendMicros >= micros {
			return b.Base, true, s.fails
		}
	}
	return 0, false, s.fails
}

func (s *shelf) Whole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.trimmed
}

func (s *shelf) PassedOver(o id.Offset) (id.Offset, bool) {
	if s.lost.from < o && o <= s.lost.to {
		return s.lost.to + 1, true
	}
	return o, false
}

// trim removes what lies below base.
func (s *shelf) trim(base id.Offset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trimmed = true
	for len(s.batches) > 0 && s.batches[0].End() <= base {
		s.batches = s.batches[1:]
	}
	s.base = base
}

// records makes a batch of records that say their offsets.
func records(base id.Offset, n int) *batch.Batch {
	b := &batch.Batch{Base: base, Count: uint32(n), Kind: batch.Records, AppendMicros: uint64(base)}
	for i := range n {
		text := fmt.Sprintf("%06d", uint64(base)+uint64(i))
		b.Body = binary.BigEndian.AppendUint32(b.Body, uint32(len(text)))
		b.Body = append(b.Body, text...)
		b.PayloadBytes += len(text)
	}
	return b
}

// pile is a log, its disk, and what is appended to both.
type pile struct {
	*Log
	disk    *shelf
	readers *storage.Readers
}

func newPile(policy storage.Policy, ring int, stored ...*batch.Batch) *pile {
	disk := &shelf{batches: stored}
	readers := storage.NewReaders(storage.ReaderOptions{Policy: policy, WindowBytes: 1 << 30, Budget: storage.NewBudget(1 << 30)})
	return &pile{Log: New(disk, storage.MemLogOptions{MaxBatches: ring, MaxBytes: 1 << 30, Readers: readers}), disk: disk, readers: readers}
}

func (p *pile) publish(n int) {
	b := records(p.Tail(), n)
	p.disk.mu.Lock()
	p.disk.batches = append(p.disk.batches, b)
	p.disk.mu.Unlock()
	p.Append([]*batch.Batch{b})
	p.SetReadable(b.End())
}

func (p *pile) register(t *testing.T, start storage.Start, at id.Offset, capacity int) storage.Cursor {
	t.Helper()
	c, err := p.Register(storage.CursorOptions{Start: start, Offset: at, Capacity: capacity, Ring: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// expect takes what there is, and wants the records from one offset up to another, each saying its own.
func expect(t *testing.T, c storage.Cursor, from, to id.Offset) {
	t.Helper()
	for {
		page, err := c.Take(t.Context(), 3, 1<<10, nil)
		if err != nil || page.Lost != 0 {
			t.Fatalf("at %d: %d lost, %v", from, page.Lost, err)
		}
		if len(page.Batches) == 0 {
			if from != to {
				t.Fatalf("ended at %d, want %d", from, to)
			}
			return
		}
		for _, b := range page.Batches {
			from = check(t, b, from)
		}
		if page.Next != from {
			t.Fatalf("the page ends at %d and says %d", from, page.Next)
		}
	}
}

func check(t *testing.T, b *batch.Batch, at id.Offset) id.Offset {
	t.Helper()
	if b.Base != at {
		t.Fatalf("a batch begins at %d, want %d", b.Base, at)
	}
	body, payload := b.Body, 0
	for range b.Count {
		n := int(binary.BigEndian.Uint32(body))
		if got := string(body[4 : 4+n]); got != fmt.Sprintf("%06d", at) {
			t.Fatalf("%s at offset %d", got, at)
		}
		body, payload, at = body[4+n:], payload+n, at+1
	}
	if len(body) != 0 || payload != b.PayloadBytes {
		t.Fatalf("%d bytes too many, payload of %d said to be %d", len(body), payload, b.PayloadBytes)
	}
	return at
}

// matrix K4
func TestAReaderSeesEveryRecordOnceAndInOrderAcrossTheJoint(t *testing.T) {
	var stored []*batch.Batch
	for i := range 10 {
		stored = append(stored, records(id.Offset(5*i), 5))
	}
	for _, start := range []id.Offset{0, 4, 5, 23, 49, 50} {
		p := newPile(storage.DropNew, 4, stored...)
		for range 8 {
			p.publish(3) // the ring holds the last four
		}
		c := p.register(t, storage.StartOffset, start, 1000)
		if c.Start() != start || c.Live() != 74 {
			t.Errorf("start %d, live %d", c.Start(), c.Live())
		}
		expect(t, c, start, 74)
		p.publish(2)
		expect(t, c, 74, 76)
		c.Release()
		if p.Behind() != 0 || p.readers.Budget().Used() != 0 {
			t.Errorf("%d readers and %d bytes are left", p.Behind(), p.readers.Budget().Used())
		}
	}
}

func TestAReaderInsideABatchOfTheTailGetsItsRest(t *testing.T) {
	p := newPile(storage.DropNew, 4)
	p.publish(4)
	p.publish(4)
	c := p.register(t, storage.StartOffset, 2, 9)
	expect(t, c, 2, 8)
	if p.disk.reads != 0 {
		t.Errorf("%d reads from disk of what the tail holds", p.disk.reads)
	}
}

func TestStartsOutsideTheLogAreRefusedByName(t *testing.T) {
	p := newPile(storage.DropNew, 4, records(0, 10), records(10, 10))
	p.disk.trim(10)
	var old *storage.TooOldError
	var future *storage.InFutureError
	if _, err := p.Register(storage.CursorOptions{Start: storage.StartOffset, Offset: 9, Capacity: 1, Ring: func() {}}); !errors.As(err, &old) || old.Oldest != 10 || old.Requested != 9 {
		t.Error(err)
	}
	if _, err := p.Register(storage.CursorOptions{Start: storage.StartOffset, Offset: 21, Capacity: 1, Ring: func() {}}); !errors.As(err, &future) || future.Tail != 20 {
		t.Error(err)
	}
	expect(t, p.register(t, storage.StartEarliest, 0, 1), 10, 20)
	expect(t, p.register(t, storage.StartLatest, 0, 1), 20, 20)
}

// matrix F4
func TestWhatRetentionRemovedBeforeItWasReadIsAnErrorAndNoGap(t *testing.T) {
	p := newPile(storage.DropNew, 2, records(0, 10), records(10, 10), records(20, 10))
	c := p.register(t, storage.StartEarliest, 0, 1)
	page, err := c.Take(t.Context(), 1, 1<<20, nil)
	if err != nil || page.Next != 10 {
		t.Fatal(page, err)
	}
	p.disk.trim(20)
	var old *storage.TooOldError
	if _, err := c.Take(t.Context(), 1, 1<<20, nil); !errors.As(err, &old) || old.Oldest != 20 || old.Requested != 10 {
		t.Error(err)
	}
	c.Release()
	if p.readers.Budget().Used() != 0 {
		t.Errorf("%d bytes are left", p.readers.Budget().Used())
	}
}

func TestUnderCatchUpAReaderThatFallsOutOfItsWindowLosesNothing(t *testing.T) {
	p := newPile(storage.CatchUp, 4)
	c := p.register(t, storage.StartLatest, 0, 2)
	for i := range 50 {
		p.publish(1 + i%3)
	}
	expect(t, c, 0, p.Tail())
	if p.disk.reads == 0 {
		t.Error("it never read from disk: the window was not full")
	}
	p.publish(1)
	expect(t, c, p.Tail()-1, p.Tail())
	if p.readers.Dropped() != 0 {
		t.Errorf("%d records were counted as lost", p.readers.Dropped())
	}
}

func TestOtherPoliciesDropOnlyOnceAReaderIsLive(t *testing.T) {
	p := newPile(storage.DropNew, 4, records(0, 30))
	c := p.register(t, storage.StartEarliest, 0, 2)
	for range 50 {
		p.publish(1)
	}
	expect(t, c, 0, 80)
	for range 10 {
		p.publish(1)
	}
	lost := uint64(0)
	for {
		page, err := c.Take(t.Context(), 9, 1<<20, nil)
		if err != nil {
			t.Fatal(err)
		}
		if lost += page.Lost; page.Lost == 0 && len(page.Batches) == 0 {
			break
		}
	}
	if lost != 8 || p.readers.Dropped() != 8 {
		t.Errorf("%d lost, %d counted; want the eight that its window of two had no room for", lost, p.readers.Dropped())
	}
}

// matrix K5
func TestAReaderBehindTheTailHoldsOnePageAndNoPublisher(t *testing.T) {
	p := newPile(storage.Block, 2, records(0, 10), records(10, 10), records(20, 10))
	p.SetReadable(30)
	c := p.register(t, storage.StartEarliest, 0, 1)
	if c.Arm(1, 1) || !c.Behind() {
		t.Fatal("armed although there is something to read, or not behind it")
	}
	if _, err := c.Take(t.Context(), 1, 1<<20, nil); err != nil {
		t.Fatal(err)
	}
	used := p.readers.Budget().Used()
	for range 5 {
		p.publish(1)
	}
	if p.Released() != p.Tail() {
		t.Errorf("released %d of %d", p.Released(), p.Tail())
	}
	if want := int64(p.disk.batches[0].Size()); used != want || p.readers.Budget().Used() != want {
		t.Errorf("%d bytes are counted, then %d; want its page of %d", used, p.readers.Budget().Used(), want)
	}
	states := p.Cursors(0, 10)
	if len(states) != 1 || states[0].Position != 10 || states[0].Tail != 35 || states[0].Bytes != used {
		t.Errorf("%+v", states)
	}
	c.Release()
	if len(p.Cursors(0, 10)) != 0 {
		t.Error("it is still listed")
	}
}

func TestReadersAreListedInTheirOrderWhereverTheyRead(t *testing.T) {
	p := newPile(storage.DropNew, 2, records(0, 10))
	var all []storage.Cursor
	for i := range 6 {
		all = append(all, p.register(t, []storage.Start{storage.StartEarliest, storage.StartLatest}[i%2], 0, 1))
	}
	got := p.Cursors(1, 4)
	if len(got) != 4 || got[0].Number != 2 || got[1].Number != 3 || got[2].Number != 4 || got[3].Number != 5 {
		t.Errorf("%+v", got)
	}
	for _, c := range all {
		c.Release()
	}
}

func TestAClosedLogTellsItsReadersBehindTheTailAtOnce(t *testing.T) {
	p := newPile(storage.DropNew, 2, records(0, 10), records(10, 10))
	behind, live := p.register(t, storage.StartEarliest, 0, 1), p.register(t, storage.StartLatest, 0, 9)
	p.publish(1)
	p.Close(storage.ClosedFailed)
	var closed *storage.ClosedError
	if _, err := behind.Take(t.Context(), 1, 1, nil); !errors.As(err, &closed) || closed.Reason != storage.ClosedFailed {
		t.Error(err)
	}
	if page, err := live.Take(t.Context(), 9, 1<<20, nil); err != nil || len(page.Batches) != 1 {
		t.Errorf("what was queued: %v, %v", page, err)
	}
	if _, err := live.Take(t.Context(), 1, 1, nil); !errors.As(err, &closed) {
		t.Error(err)
	}
	if _, err := p.Read(t.Context(), 0, 10, 1, 1, nil); !errors.As(err, &closed) {
		t.Error(err)
	}
}

func TestHistoryEndsAtTheReadableEnd(t *testing.T) {
	p := newPile(storage.DropNew, 2, records(0, 10))
	b := records(10, 5)
	p.disk.batches = append(p.disk.batches, b)
	p.Append([]*batch.Batch{b}) // stored, and nobody said that it may be read
	got, err := p.Read(t.Context(), 8, 100, 9, 1<<20, nil)
	if err != nil || len(got) != 1 || got[0].End() != 10 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := p.Read(t.Context(), 10, 100, 9, 1<<20, nil); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if o, ok, err := p.OffsetForTime(t.Context(), 10); ok || err != nil {
		t.Errorf("%d, %t, %v: the record of that time may not be read yet", o, ok, err)
	}
	damage := errors.New("segment 3 is damaged")
	p.disk.fails = damage
	if _, err := p.Read(t.Context(), 0, 10, 1, 1, nil); !errors.Is(err, damage) {
		t.Error(err)
	}
}

// matrix K4
func TestReadersJoinUnderConstantPublishing(t *testing.T) {
	p := newPile(storage.CatchUp, 8, records(0, 100))
	const total = 4000
	go func() {
		for p.Tail() < total {
			p.publish(1)
		}
	}()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			rang := make(chan struct{}, 1)
			c, err := p.Register(storage.CursorOptions{Start: storage.StartOffset, Offset: id.Offset(10 * n), Capacity: 1 + n, Ring: func() { rang <- struct{}{} }})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Release()
			for at := id.Offset(10 * n); at < total; {
				page, err := c.Take(context.Background(), 5, 1<<10, nil)
				if err != nil || page.From != at || len(page.Batches) > 0 && page.Batches[0].Base != at {
					t.Errorf("at %d: %v, %v", at, page, err)
					return
				}
				if at = page.Next; len(page.Batches) == 0 && c.Arm(1, 1) {
					<-rang
				}
			}
		})
	}
	all.Wait()
}

// A reader that was told of what is lost begins anew behind it, and never goes on where others follow in its place.
func TestAReaderThatWasToldOfWhatIsLostDoesNotGoOn(t *testing.T) {
	p := newPile(storage.DropNew, 8, records(0, 10))
	p.disk.lost.from, p.disk.lost.to = 4, 7
	for at := range id.Offset(11) {
		c, err := p.Register(storage.CursorOptions{Start: storage.StartOffset, Offset: at, Capacity: 8, Ring: func() {}})
		var old *storage.TooOldError
		if lost := at > 4 && at <= 7; lost != errors.As(err, &old) || lost && old.Oldest != 8 || !lost && err != nil {
			t.Errorf("from %d: %v", at, err)
		}
		if err == nil {
			c.Release()
		}
	}
}

// From 0 is from the beginning, wherever a log's offsets begin, as long as nothing of it was removed; no other place below them is one.
func TestFromZeroIsFromTheBeginningOfALogThatIsWhole(t *testing.T) {
	p := newPile(storage.DropNew, 8, records(1000, 10))
	p.disk.base = 1000
	from := func(at id.Offset) (id.Offset, error) {
		c, err := p.Register(storage.CursorOptions{Start: storage.StartOffset, Offset: at, Capacity: 8, Ring: func() {}})
		if err != nil {
			return 0, err
		}
		defer c.Release()
		return c.(*cursor).joined.Start, nil
	}
	if at, err := from(0); err != nil || at != 1000 {
		t.Errorf("from 0 begins at %d: %v", at, err)
	}
	var old *storage.TooOldError
	if _, err := from(7); !errors.As(err, &old) {
		t.Errorf("a place of another log, below it: %v", err)
	}
	p.disk.trim(1005)
	if _, err := from(0); !errors.As(err, &old) {
		t.Errorf("from 0 when something was removed: %v", err)
	}
}
