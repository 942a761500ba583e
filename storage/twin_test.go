package storage

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// twinReader is the obviously right reader: three slices of batches, and no word about holes, which are what is missing in them.
type twinReader struct {
	cursor               Cursor
	capacity             int
	told                 id.Offset // end of the page before
	hand, queue, waiting []*batch.Batch
	dropped              uint64
	armed                int // batches that ring it, 0: not armed
	rung, heard          int
}

func sizes(list ...[]*batch.Batch) (n int64) {
	for _, l := range list {
		for _, b := range l {
			n += int64(b.Size())
		}
	}
	return n
}

// gaps counts the holes ahead of the reader if next is what comes after its queue.
func (r *twinReader) gaps(next id.Offset) (n int, open bool) {
	end := r.told
	for _, b := range r.queue {
		if b.Base != end {
			n++
		}
		end = b.End()
	}
	if open = next != end; open {
		n++
	}
	return n, open
}

// room is the rule of the window, as the documents tell it.
func (r *twinReader) room(b *batch.Batch, windowBytes int64) bool {
	inside, bytes := len(r.hand)+len(r.queue), sizes(r.hand, r.queue)
	if inside == 0 {
		return true
	}
	batches, most := r.capacity, windowBytes
	if holes, open := r.gaps(b.Base); open {
		if holes == 4 {
			return false
		}
		batches -= (holes - 1) * r.capacity / 8
		most -= int64(holes-1) * (windowBytes / 8)
	}
	return inside < batches && bytes+int64(b.Size()) <= most
}

// twinLog is the obviously right log: everything that was ever published.
type twinLog struct {
	batches  []*batch.Batch
	readers  []*twinReader
	ring     int
	window   int64
	block    bool
	released id.Offset // when it was asked for last
	owed     bool
	rooms    int
}

func (m *twinLog) end() id.Offset {
	if len(m.batches) == 0 {
		return 0
	}
	return m.batches[len(m.batches)-1].End()
}

func (m *twinLog) inRing() []*batch.Batch { return m.batches[max(0, len(m.batches)-m.ring):] }

func (m *twinLog) arrive(b *batch.Batch) {
	m.batches = append(m.batches, b)
	for _, r := range m.readers {
		switch {
		case len(r.waiting) == 0 && r.room(b, m.window):
			r.queue = append(r.queue, b)
		case m.block:
			r.waiting = append(r.waiting, b)
		default:
			r.dropped += uint64(b.Count)
		}
	}
}

// ring tells the readers that have enough, after all of an append has come.
func (m *twinLog) ringReaders() {
	for _, r := range m.readers {
		if r.armed > 0 && len(r.queue)+len(r.waiting) >= r.armed {
			r.armed = 0
			r.rung++
		}
	}
}

func (r *twinReader) finish(window int64) {
	r.hand = nil
	for len(r.waiting) > 0 && r.room(r.waiting[0], window) {
		r.queue = append(r.queue, r.waiting[0])
		r.waiting = r.waiting[1:]
	}
}

func (r *twinReader) take(end id.Offset, most int) (bases []id.Offset, lost uint64) {
	from := r.told
	if len(r.queue) == 0 {
		r.told = end
		return nil, end.Since(from)
	}
	lost = r.queue[0].Base.Since(from)
	r.told = r.queue[0].Base
	for len(r.queue) > 0 && r.queue[0].Base == r.told && len(bases) < most {
		bases = append(bases, r.queue[0].Base)
		r.told = r.queue[0].End()
		r.hand, r.queue = append(r.hand, r.queue[0]), r.queue[1:]
	}
	return bases, lost
}

// held is where the first batch lies that some reader has no room for.
func (m *twinLog) held() id.Offset {
	end := m.end()
	for _, r := range m.readers {
		if len(r.waiting) > 0 {
			end = min(end, r.waiting[0].Base)
		}
	}
	return end
}

// needed is what lies outside the ring and somebody needs.
func (m *twinLog) needed() (bytes int64) {
	ring := m.inRing()
	for _, b := range m.batches[:len(m.batches)-len(ring)] {
		for _, r := range m.readers {
			if has(r.hand, b) || has(r.queue, b) || has(r.waiting, b) {
				bytes += int64(b.Size())
				break
			}
		}
	}
	return bytes
}

func has(list []*batch.Batch, b *batch.Batch) bool {
	for _, x := range list {
		if x == b {
			return true
		}
	}
	return false
}

func (m *twinLog) check(t *rapid.T, l *MemLog) {
	if kept, booked := l.Kept(), l.opts.Readers.Budget().Used(); kept != m.needed() || booked != kept {
		t.Fatalf("%d bytes are kept and %d booked, %d are needed", kept, booked, m.needed())
	}
	states := l.Cursors(0, 1000)
	if len(states) != len(m.readers) {
		t.Fatalf("%d readers are listed of %d", len(states), len(m.readers))
	}
	lagging := int64(0)
	for i, r := range m.readers {
		if queued := len(r.hand) + len(r.queue) + len(r.waiting); states[i].Queued != queued || states[i].Dropped != r.dropped {
			t.Fatalf("reader %d: %+v, want %d queued and %d dropped", i, states[i], queued, r.dropped)
		}
		if r.heard != r.rung {
			t.Fatalf("reader %d was rung %d times, want %d", i, r.heard, r.rung)
		}
		if len(r.hand)+len(r.queue) > 0 {
			lagging++
		}
	}
	if l.opts.Readers.Lagging() != lagging {
		t.Fatalf("%d readers lag, want %d", l.opts.Readers.Lagging(), lagging)
	}
	if m.owed && m.held() > m.released {
		m.owed = false
		m.rooms++
	}
}

func TestMemLogBehavesLikeItsNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &twinLog{ring: rapid.IntRange(1, 12).Draw(t, "ring"), window: rapid.Int64Range(1, 20).Draw(t, "window") * 400, block: rapid.Bool().Draw(t, "block")}
		r := readersOf(func(o *ReaderOptions) {
			if o.WindowBytes = m.window; m.block {
				o.Policy = Block
			}
		})
		l := logOf(m.ring, r)
		rooms := 0
		l.OnRoom(func() { rooms++ })
		some := func(t *rapid.T) *twinReader {
			if len(m.readers) == 0 {
				t.Skip("no readers")
			}
			return m.readers[rapid.IntRange(0, len(m.readers)-1).Draw(t, "reader")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				var list []*batch.Batch
				for range rapid.IntRange(1, 6).Draw(t, "batches") {
					b := claimed(m.end(), rapid.Uint32Range(1, 5).Draw(t, "records"), rapid.IntRange(0, 500).Draw(t, "bytes"))
					m.arrive(b)
					list = append(list, b)
				}
				m.ringReaders()
				l.Append(list)
				l.SetReadable(l.Tail())
			},
			"register": func(t *rapid.T) {
				x := &twinReader{capacity: rapid.IntRange(1, 9).Draw(t, "capacity"), told: m.end()}
				o := CursorOptions{Capacity: x.capacity, Ring: func() { x.heard++ }}
				if rapid.Bool().Draw(t, "earliest") {
					o.Start = StartEarliest
					if x.queue = append(x.queue, m.inRing()...); len(x.queue) > 0 {
						x.told = x.queue[0].Base
					}
				}
				x.cursor = must(l.Register(o))
				m.readers = append(m.readers, x)
			},
			"take": func(t *rapid.T) {
				x := some(t)
				x.armed = 0
				x.cursor.Disarm()
				most := rapid.IntRange(1, 5).Draw(t, "most")
				x.finish(m.window)
				want, wantLost := x.take(m.end(), most)
				page, err := x.cursor.Take(context.Background(), most, 1<<40, nil)
				var got []id.Offset
				for _, b := range page.Batches {
					got = append(got, b.Base)
				}
				if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || page.Lost != wantLost || page.Next != x.told {
					t.Fatalf("took %v up to %d, lost %d, %v; want %v up to %d, %d", got, page.Next, page.Lost, err, want, x.told, wantLost)
				}
			},
			"arm": func(t *rapid.T) {
				x := some(t)
				x.cursor.Disarm()
				x.finish(m.window)
				x.armed = 0
				n := rapid.IntRange(1, 4).Draw(t, "batches")
				_, open := x.gaps(m.end())
				ready := len(x.queue)+len(x.waiting) >= n || open && len(x.waiting) == 0
				if holes, _ := x.gaps(m.end()); holes > 0 && !m.block {
					ready = true
				}
				if x.cursor.Arm(n, 1<<40) == ready {
					t.Fatalf("armed for %d: %t, with %d queued and %d waiting", n, !ready, len(x.queue), len(x.waiting))
				}
				if !ready {
					x.armed = n
				}
			},
			"release": func(t *rapid.T) {
				x := some(t)
				x.cursor.Release()
				for i, r := range m.readers {
					if r == x {
						m.readers = append(m.readers[:i:i], m.readers[i+1:]...)
						break
					}
				}
			},
			"ask": func(t *rapid.T) {
				if m.released = m.held(); l.Released() != m.released {
					t.Fatalf("released, want %d", m.released)
				}
				m.owed = m.released < m.end()
			},
			"": func(t *rapid.T) {
				if m.check(t, l); rooms != m.rooms {
					t.Fatalf("the shard was told of room %d times, want %d", rooms, m.rooms)
				}
			},
		})
	})
}

// With a budget that is too small for everybody: each reader hears of every record once, as delivered or as lost, in order, and what is
// kept stays inside the budget, but for what is in some reader's hand.
func TestASmallBudgetCostsReadersRecordsAndNeverCountsThemWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 4000).Draw(t, "budget")
		r := readersOf(func(o *ReaderOptions) { o.Budget = NewBudget(limit) })
		l := logOf(rapid.IntRange(1, 6).Draw(t, "ring"), r)
		type reader struct {
			cursor Cursor
			next   id.Offset
			hand   int64
			lost   uint64
		}
		var list []*reader
		for range rapid.IntRange(1, 4).Draw(t, "readers") {
			list = append(list, &reader{cursor: register(l, StartLatest, rapid.IntRange(1, 30).Draw(t, "capacity"))})
		}
		take := func(t *rapid.T, x *reader, most int) bool {
			page, err := x.cursor.Take(context.Background(), most, 1<<40, nil)
			if err != nil || page.From != x.next || page.Lost > page.Next.Since(x.next) {
				t.Fatalf("after %d: %+v, %v", x.next, page, err)
			}
			x.next = x.next.Add(page.Lost)
			x.lost += page.Lost
			for _, b := range page.Batches {
				if b.Base != x.next {
					t.Fatalf("got %d where %d was next, %d told as lost", b.Base, x.next, page.Lost)
				}
				x.next = b.End()
			}
			x.hand = sizes(page.Batches)
			return page.Lost > 0 || len(page.Batches) > 0
		}
		check := func(t *rapid.T) {
			hands, dropped := int64(0), uint64(0)
			for _, x := range list {
				hands += x.hand
			}
			for _, s := range l.Cursors(0, 9) {
				dropped += s.Dropped
			}
			if l.Kept() > max(limit, 0)+hands || l.Kept() != r.Budget().Used() || dropped != r.Dropped() {
				t.Fatalf("%d bytes kept with a budget of %d and %d in hand, %d booked", l.Kept(), limit, hands, r.Budget().Used())
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				l.publish(rapid.IntRange(1, 6).Draw(t, "batches"), rapid.IntRange(0, 500).Draw(t, "bytes"))
			},
			"take": func(t *rapid.T) {
				take(t, list[rapid.IntRange(0, len(list)-1).Draw(t, "reader")], rapid.IntRange(1, 5).Draw(t, "most"))
			},
			"": check,
		})
		for i, x := range list {
			for take(t, x, 100) {
			}
			if x.next != l.Tail() || x.lost != l.Cursors(uint64(i), 1)[0].Dropped {
				t.Fatalf("reader %d ended at %d of %d and heard of %d lost", i, x.next, l.Tail(), x.lost)
			}
		}
		if l.Kept() != 0 || r.Lagging() != 0 {
			t.Fatalf("%d bytes are left for %d readers", l.Kept(), r.Lagging())
		}
	})
}
