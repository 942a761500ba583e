package client

import (
	"bytes"
	"testing"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/wire"
)

// wantAllocs checks how many allocations a step makes in steady state.
func wantAllocs(t *testing.T, most float64, step func()) {
	t.Helper()
	step() // warm up
	if got := testing.AllocsPerRun(200, step); got > most {
		t.Errorf("%.1f allocations, want at most %.0f", got, most)
	}
}

func payloads(n, size int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = bytes.Repeat([]byte{byte(i)}, size)
	}
	return all
}

// looseLane is a lane without a stream, for steps that write nothing.
func looseLane() *lane {
	c := &Client{opts: Options{TenantID: "tenant", MaxFrameBytes: wire.MaxPayload}, tenant: []byte("tenant"), chunks: chunkPool{bytes: DefaultPublishChunkBytes}}
	return &lane{client: c, kind: publishLane, control: &control{grant: wire.Grant{Flags: wire.KnownFlags}}, out: outbox{spares: &c.chunks}}
}

// The one allocation is the publication itself, which a PendingPublish holds.
func TestEncodingABatchCopiesItOnceIntoAReusedBuffer(t *testing.T) {
	l := looseLane()
	records := payloads(64, 256)
	r := &request{}
	key := []byte("key")
	step := func() {
		pub := publication{namespace: "ns", stream: "s", payloads: records, count: 64, bytes: 64 * 260, publishSettings: publishSettings{key: key, keyed: true}}
		r.encoder = &pub
		if err := l.out.add(l, r); err != nil {
			t.Fatal(err)
		}
		l.client.chunks.put(l.out.next())
	}
	if effort.Raced {
		t.Log("sync.Pool drops items at random under the race detector; only the plain build counts allocations")
		for range 200 {
			step()
		}
		return
	}
	wantAllocs(t, 1, step)
}

func TestFullBatchOfABatcherIsWrittenFromWhereItWasCollected(t *testing.T) {
	l := looseLane()
	pub := publication{namespace: "ns", stream: "s", publishSettings: publishSettings{key: []byte("key"), keyed: true}}
	b := &openBatch{pub: pub, head: pub.headBytes(l.client), buf: l.client.chunks.get(0)}
	b.buf.bytes = b.buf.bytes[:b.head]
	for _, p := range payloads(64, 256) {
		b.append(p)
	}
	at := &b.buf.bytes[0]
	whole := b.pub
	whole.batch, whole.count, whole.bytes = b, b.count, b.bytes()
	if err := l.out.add(l, &request{id: 7, encoder: &whole}); err != nil {
		t.Fatal(err)
	}
	c := l.out.next()
	if &c.bytes[0] != at {
		t.Fatal("the batch was copied")
	}
	header, err := wire.ParseHeader(c.bytes, wire.MaxPayload)
	if err != nil || int(header.Length) != len(c.bytes)-wire.HeaderSize {
		t.Fatalf("%+v, %v", header, err)
	}
	var p wire.Publish
	if err := p.Decode(header.Flags, c.bytes[wire.HeaderSize:]); err != nil {
		t.Fatal(err)
	}
	if p.RequestID != 7 || string(p.Key) != "key" || string(p.Tenant) != "tenant" || string(p.Namespace) != "ns" || string(p.Stream) != "s" || p.Count != 64 ||
		p.PayloadBytes != 64*256 {
		t.Fatalf("%+v", p)
	}
}

func TestAddingToAnOpenBatchAllocatesNothing(t *testing.T) {
	l := looseLane()
	b := &Batcher{client: l.client, namespace: "ns", stream: "s", budget: newByteBudget(1 << 20)}
	b.client.opts.PublishChunkBytes = DefaultPublishChunkBytes
	b.opts, _ = BatcherOptions{MaxRecords: 1 << 30, MaxBytes: 1 << 30}.complete("test")
	q := &collector{batcher: b, wake: make(chan struct{}, 1)}
	q.open = &openBatch{mixes: true, buf: &chunk{bytes: make([]byte, 0, 1<<20)}}
	payload := make([]byte, 6)
	wantAllocs(t, 0, func() {
		pub := b.publication(nil, false)
		pub.count, pub.bytes = 1, 10
		if _, ok := q.join(&pub, payload, nil); !ok {
			t.Fatal("no room")
		}
	})
}

// One allocation for the whole frame, whose pieces are the payloads.
func TestEventsOfAFrameShareItsOneAllocation(t *testing.T) {
	batch := wire.EventBatch{Count: 64, HasOffset: true, BaseOffset: 5}
	for _, p := range payloads(64, 256) {
		batch.Region = wire.AppendPayload(batch.Region, p)
	}
	frame := wire.AppendEventBatch(nil, wire.FlagEventBatchShared|wire.FlagEventOffsets, &batch)
	stream := bytes.NewReader(nil)
	frames := newEventReader(stream, wire.MaxPayload)
	wantAllocs(t, 1, func() {
		stream.Reset(frame)
		header, body, err := frames.next()
		if err != nil {
			t.Fatal(err)
		}
		events, err := decodeEvents("test", 1, header, body)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for e, ok := events.pop(); ok; e, ok = events.pop() {
			if len(e.Payload) != 256 || cap(e.Payload) != 256 || e.Payload[0] != byte(n) {
				t.Fatalf("event %d: %d bytes with room for %d", n, len(e.Payload), cap(e.Payload))
			}
			n++
		}
		if n != 64 {
			t.Fatalf("%d events", n)
		}
	})
}
