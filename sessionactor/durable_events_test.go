package sessionactor

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// recorder is an event stream that keeps each write by itself.
type recorder struct {
	SendStream
	wrote chan []byte
}

func (r recorder) Write(p []byte) (int, error) {
	r.wrote <- bytes.Clone(p)
	return len(p), nil
}

// durableLoop is one delivery of a durable stream over a log that the test writes, without a session around it.
type durableLoop struct {
	t     *testing.T
	log   *storage.MemLog
	wrote chan []byte
}

// offsets is what a client offers to read all there is about offsets.
const offsets = wire.FlagEventBatchShared | wire.FlagEventOffsets | wire.FlagEventSkipped

// newDurableLoop does not begin to deliver: the log can be filled first.
func newDurableLoop(t *testing.T, flags wire.Flags, capacity int) (x *durableLoop, begin func()) {
	x = &durableLoop{t: t, wrote: make(chan []byte, 64)}
	readers := storage.NewReaders(storage.ReaderOptions{WindowBytes: 1 << 30, Budget: storage.NewBudget(1 << 30)})
	x.log = storage.NewMemLog(100, storage.MemLogOptions{MaxBatches: 1000, MaxBytes: 1 << 30, Readers: readers, Durable: true})
	ctx, cancel := context.WithCancel(context.Background())
	o := &Options{Clock: actors.RealClock(), Delivery: DefaultDelivery(), Metrics: NewMetrics(newRegistry())}
	o.Delivery.MaxEvents = 2
	grant := wire.Negotiate(wire.Offer{Flags: flags}, DurableOffer())
	d := newFeed(o, ctx, 7, recorder{newHalf(context.Background(), actors.RealClock(), 1<<20), x.wrote}, requested(capacity, true, grant))
	d.cursor, _ = x.log.Register(storage.CursorOptions{Capacity: capacity, Ring: d.gate.Ring}) // the latest is never refused
	over := make(chan error, 1)
	begun := false
	t.Cleanup(func() {
		cancel()
		if begun {
			_ = want(t, over, "the end of the loop")
		}
	})
	return x, func() {
		begun = true
		go func() { over <- d.deliver(ctx) }()
	}
}

// add appends a batch of that kind as it comes from disk, without frames of its own.
func (x *durableLoop) add(kind batch.Kind, payloads ...string) {
	b := &batch.Batch{Base: x.log.Tail(), Count: uint32(max(1, len(payloads))), Kind: kind, AppendMicros: 5}
	for _, p := range payloads {
		b.Body = wire.AppendPayload(b.Body, []byte(p))
	}
	x.log.Append([]*batch.Batch{b})
	x.log.SetReadable(x.log.Tail())
}

// writes returns the bytes of all writes up to a length.
func (x *durableLoop) writes(n int) (all []byte) {
	x.t.Helper()
	for len(all) < n {
		all = append(all, want(x.t, x.wrote, "a write")...)
	}
	return all
}

func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Byte by byte: the offset of the first event of each frame, and before the event that follows them the offsets that hold none.
func TestEventsOfADurableStreamCarryTheirOffsets(t *testing.T) {
	for name, c := range map[string]struct {
		flags wire.Flags
		want  string
	}{
		"all of it": {offsets, "" +
			"464c5831 0001 0024 00000016 0000000000000064 00000002 00000001 61 00000001 62" + // offset 100, two events
			"464c5831 0001 0024 00000011 0000000000000066 00000001 00000001 63" + // cut: at most two events in a frame
			"464c5831 0001 0824 00000019 0000000000000069 0000000000000002 00000001 00000001 64"}, // 105, after two that hold none
		"no skipped offsets": {offsets &^ wire.FlagEventSkipped, "" +
			"464c5831 0001 0024 00000016 0000000000000064 00000002 00000001 61 00000001 62" +
			"464c5831 0001 0024 00000011 0000000000000066 00000001 00000001 63" +
			"464c5831 0001 0024 00000011 0000000000000069 00000001 00000001 64"},
		"of one subscription": {wire.FlagEventBatch | wire.FlagEventOffsets, "" +
			"464c5831 0001 0022 0000001e 0000000000000007 0000000000000064 00000002 00000001 61 00000001 62" +
			"464c5831 0001 0022 00000019 0000000000000007 0000000000000066 00000001 00000001 63" +
			"464c5831 0001 0022 00000019 0000000000000007 0000000000000069 00000001 00000001 64"},
		"with timestamps": {offsets | wire.FlagEventTimestamps, "" +
			"464c5831 0001 4024 00000026 0000000000000064 00000002 0000000000000005 00000001 61 0000000000000005 00000001 62" +
			"464c5831 0001 4024 00000019 0000000000000066 00000001 0000000000000005 00000001 63" +
			"464c5831 0001 4824 00000021 0000000000000069 0000000000000002 00000001 0000000000000005 00000001 64"},
		"no offsets": {wire.FlagEventBatchShared, "" + // encoded all the same: what comes from disk carries no frames
			"464c5831 0001 0004 0000000e 00000002 00000001 61 00000001 62" +
			"464c5831 0001 0004 00000009 00000001 00000001 63" +
			"464c5831 0001 0004 00000009 00000001 00000001 64"},
	} {
		t.Run(name, func(t *testing.T) {
			x, begin := newDurableLoop(t, c.flags, 512)
			x.add(batch.Records, "a", "b", "c")
			x.add(batch.GenerationStart)
			x.add(batch.Checkpoint)
			x.add(batch.Records, "d")
			begin()
			expected := bytesOf(t, c.want)
			if got := x.writes(len(expected)); !bytes.Equal(got, expected) {
				t.Errorf("wrote\n%x, want\n%x", got, expected)
			}
		})
	}
}

// STR-04: a gap in offsets is what was lost, less what is said to hold no event, wherever in the gap that lies.
//
// matrix K9
func TestOffsetsInAHoleAreSkippedOnlyWhereTheyHeldNoEvent(t *testing.T) {
	x, begin := newDurableLoop(t, offsets, 3)
	x.add(batch.Records, "a")      // 100
	x.add(batch.GenerationStart)   // 101
	x.add(batch.Records, "b")      // 102; the window is full
	x.add(batch.Records, "c", "d") // 103 and 104 are lost
	x.add(batch.GenerationStart)   // 105, in the hole
	begin()
	events := x.events(2)
	x.add(batch.Moved)        // 106
	x.add(batch.Records, "e") // 107
	events = append(events, x.events(1)...)
	next := id.Offset(100)
	for i, lost := range []uint64{0, 0, 2} {
		e := events[i]
		if got := uint64(e.BaseOffset-next) - e.SkippedBefore; got != lost {
			t.Errorf("event at %d, %d skipped before it: %d are lost after %d, want %d", e.BaseOffset, e.SkippedBefore, got, next, lost)
		}
		next = e.BaseOffset + 1
	}
	if events[1].SkippedBefore != 1 || events[2].SkippedBefore != 2 || events[2].BaseOffset != 107 {
		t.Errorf("%+v", events)
	}
}

// events reads frames of one event each.
func (x *durableLoop) events(n int) (list []wire.DecodedEvents) {
	x.t.Helper()
	for len(list) < n {
		for rest := want(x.t, x.wrote, "a write"); len(rest) > 0; {
			h, err := wire.ParseHeader(rest, wire.MaxPayload)
			if err != nil {
				x.t.Fatal(err)
			}
			end := wire.HeaderSize + int(h.Length)
			e, err := wire.DecodeEventBatch(h.Flags, rest[wire.HeaderSize:end])
			if err != nil {
				x.t.Fatal(err)
			}
			list, rest = append(list, e), rest[end:]
		}
	}
	return list
}

// A large record is not copied for its readers: its header is one write, and its bytes are another.
func TestALargeRecordFromDiskIsWrittenBehindItsHeaderUncopied(t *testing.T) {
	x, begin := newDurableLoop(t, offsets, 512)
	x.add(batch.Records, strings.Repeat("x", 200<<10))
	begin()
	header, body := want(t, x.wrote, "the header"), want(t, x.wrote, "the record")
	if len(header) != wire.HeaderSize+12 || len(body) != 4+200<<10 {
		t.Errorf("a write of %d bytes, then one of %d", len(header), len(body))
	}
}

// Of a commit subscribers see the event and nothing of the changes, from memory and from disk.
func TestSubscribersSeeOfACommitItsEvent(t *testing.T) {
	m := &wire.Commit{EntityKey: []byte("e"), Event: []byte("paid"), Changes: []wire.Change{{Key: "k", Value: []byte("secret")}, {Delete: true, Key: "old"}}}
	b := commitBatch(m)
	if !b.Summed || b.Sum != batch.Checksum(b.Body) || !bytes.Equal(b.Framed[len(b.Framed)-len(b.Region()):], b.Region()) || cap(b.Framed) != len(b.Framed) {
		t.Errorf("the batch is %+v", b)
	}
	for _, flags := range []wire.Flags{wire.FlagEventBatchShared, offsets} {
		x, begin := newDurableLoop(t, flags, 512)
		stored := b
		stored.Base, stored.Framed = 101, nil
		for i, one := range []batch.Batch{b, stored} {
			one.Base = id.Offset(100 + i)
			x.log.Append([]*batch.Batch{&one})
		}
		x.log.SetReadable(102)
		begin()
		for _, e := range x.events(2) {
			if p, _, ok := e.Next(); !ok || string(p) != "paid" || e.Count != 1 {
				t.Errorf("an event %q of %d", p, e.Count)
			}
		}
	}
}

var errDisk = errors.New("read segment 3: checksum")

// What cannot be read ends the subscription, which a client must not take for the end of the stream; the operator is told, and nobody
// panics.
func TestDamageUnderASubscriptionBreaksItOffAndIsReported(t *testing.T) {
	events := &told{}
	x, log := durable(t, setting{change: func(o *Options) { o.Events = events }})
	c := x.connect()
	l := dial(t, c, today())
	s := l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	log.fail(errDisk)
	l.publish("orders", "a")
	if f, err := s.read(); err == nil {
		t.Fatalf("the event stream goes on with %q", f.payload)
	} else if err.Error() == "EOF" {
		t.Error("the event stream ended as if it were complete")
	}
	if x.metric("felix_log_read_failures_total") != 1 || events.of("log_read_failed") != 1 {
		t.Error("the operator was not told")
	}
	log.fail(nil)
	again := l.subscribe(c, subscribeTo("orders", wire.StartEarliest))
	if got, _, _ := again.events(1); got[0] != "a" {
		t.Errorf("got %q", got)
	}
}

// STR-07: retention that overtakes a reader is no end of the stream: who can resume is told to, and hears there how far back it may.
//
// matrix K6
func TestAReaderThatRetentionOvertakesIsToldToResumeOrBrokenOff(t *testing.T) {
	for name, auth := range map[string]*wire.Auth{"can be told": today(), "cannot": flags(offsets)} {
		x, log := durable(t, setting{})
		c := x.connect()
		l := dial(t, c, today())
		l.publish("orders", "a")
		s := dial(t, c, auth).subscribe(c, subscribeTo("orders", wire.StartEarliest))
		s.events(1)
		log.fail(&storage.TooOldError{Requested: 1, Oldest: 9})
		l.publish("orders", "b")
		f, err := s.read()
		if name == "cannot" {
			if err == nil || err.Error() == "EOF" {
				t.Errorf("%s: read %q, %v", name, f.payload, err)
			}
			continue
		}
		if err != nil || string(f.payload) != `{"type":"subscription_lagged","subscription_id":1,"resume_from":1}` {
			t.Errorf("%s: read %q, %v", name, f.payload, err)
		}
		s.over()
	}
}

// discard is an event stream that takes everything.
type discard struct{ SendStream }

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// A header for each reader costs no allocation, whether the batch is in memory, comes from disk, or is cut.
func TestOffsetsCostAReaderNoAllocation(t *testing.T) {
	o := &Options{Delivery: DefaultDelivery(), Metrics: NewMetrics(newRegistry())}
	d := newFeed(o, t.Context(), 7, discard{}, requested(1, true, wire.Grant{Flags: offsets}))
	var list []*batch.Batch
	for i, n := range []int{1, 64, 300} {
		b := &batch.Batch{Base: id.Offset(1000 * i), Count: uint32(n), Kind: batch.Records}
		for range n {
			b.Body = wire.AppendPayload(b.Body, make([]byte, 256))
		}
		list = append(list, b)
	}
	n := testing.AllocsPerRun(100, func() {
		d.skipped = 1
		if err := d.write(list); err != nil {
			t.Fatal(err)
		}
	})
	if n > poolSlack {
		t.Errorf("%v allocations for three batches", n)
	}
}
