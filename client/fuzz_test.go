package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// FuzzEventFrames: whatever a broker puts on an event stream, the client returns events or an error of its own types,
// never more payload than there were bytes, and does not panic.
func FuzzEventFrames(f *testing.F) {
	full := wire.EventBatch{SubscriptionID: 1, HasOffset: true, BaseOffset: 9, Timestamps: true, Count: 2, Region: testbroker.Region("a", "bc")}
	for _, flags := range []wire.Flags{wire.FlagEventBatch, wire.FlagEventBatchShared | wire.FlagEventOffsets, wire.FlagEventBatchShared | wire.FlagEventTimestamps} {
		f.Add(wire.AppendEventBatch(nil, flags, &full))
	}
	for _, m := range []wire.Message{&wire.EventBatchMessage{Records: full.Region, Count: 2}, &wire.EventMessage{Record: testbroker.Region("x")},
		&wire.ShardMoved{}, &wire.SubscriptionLagged{}, &wire.ErrorAnswer{}, &wire.Topology{}} {
		f.Add(wire.AppendJSONFrame(nil, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frames := newEventReader(bytes.NewReader(b), wire.MaxPayload)
		for size := 0; ; {
			header, payload, err := frames.next()
			var events batch
			if err == nil {
				events, err = decodeEvents("fuzz", 1, header, payload)
			}
			if err != nil {
				var frame *wire.FrameError
				if err != io.EOF && err != io.ErrUnexpectedEOF && !errors.As(err, &frame) && len(err.Error()) == 0 {
					t.Fatalf("%T says nothing", err)
				}
				return
			}
			popped := uint32(0)
			for e, ok := events.pop(); ok; e, ok = events.pop() {
				popped++
				if size += len(e.Payload); size > len(b) {
					t.Fatalf("%d bytes of payload from %d bytes", size, len(b))
				}
			}
			if popped != events.count {
				t.Fatalf("%d events came out of a batch of %d", popped, events.count)
			}
		}
	})
}

// FuzzWatchFrames: whatever a broker puts on the event stream of a watch, changes come in the order of their offsets, the values
// of a counted snapshot are as many as were said, and it ends with an error of the client's own types.
func FuzzWatchFrames(f *testing.F) {
	value := func(key string, at id.Offset) *wire.CacheEvent {
		return &wire.CacheEvent{Key: key, Value: wire.Some([]byte("v")), Offset: at, ExpiresAtMillis: 1 << 63}
	}
	for _, m := range []wire.Message{value("k", 3), value("k", 7), value("x", 8), &wire.CacheEvent{Key: "k", Offset: 9},
		&wire.CacheWatchLagged{ResumeFrom: 4}, &wire.ShardMoved{}, &wire.ErrorAnswer{}, &wire.Topology{}} {
		frame := wire.AppendJSONFrame(nil, m)
		f.Add(false, uint64(2), append(frame, frame...))
		f.Add(true, uint64(1), append(frame, wire.AppendJSONFrame(nil, value("k", 11))...))
	}
	f.Fuzz(func(t *testing.T, counted bool, left uint64, b []byte) {
		s := newWatchSource(&Client{closing: context.Background()}, "ns", "c", 0, &WatchOptions{Prefix: "k"})
		defer s.cancel()
		s.installSnapshot(&opened{snap: &snapshot{frontier: 7, counted: counted, left: left}})
		frames := newEventReader(bytes.NewReader(b), wire.MaxPayload)
		var values uint64
		for due := id.Offset(7); ; {
			header, payload, err := frames.next()
			var p piece
			var ok bool
			if err == nil {
				p, ok, err = s.topic.take(s, nil, header, payload)
			}
			if err != nil {
				return
			}
			given := s.ahead
			if s.ahead = nil; ok {
				given = append(given, p)
			}
			for _, p := range given {
				switch change := p.item.Change; {
				case p.item.Kind != ItemEvent:
				case change.Retained:
					if values++; counted && values > left || change.Offset >= 7 {
						t.Fatalf("value %d of %d: %+v", values, left, change)
					}
				case change.Offset < due:
					t.Fatalf("%+v, when %v was due", change, due)
				default:
					due = change.Offset.Add(1)
				}
			}
		}
	})
}

// FuzzAnswers: whatever a broker answers, each request ends exactly once or stays, and the lane does not panic.
func FuzzAnswers(f *testing.F) {
	f.Add(false, wire.AppendPublishAck(nil, &wire.PublishAck{RequestID: 2}, wire.Grant{Flags: wire.KnownFlags}))
	f.Add(false, wire.AppendJSONFrame(nil, &wire.PublishOK{RequestID: 1}))
	f.Add(false, wire.AppendJSONFrame(nil, &wire.PublishError{RequestID: 1}))
	f.Add(true, wire.AppendJSONFrame(nil, &wire.CacheOK{RequestID: 3}))
	f.Add(true, wire.AppendJSONFrame(nil, &wire.CacheValue{RequestID: wire.Some(uint64(2))}))
	f.Add(true, wire.AppendJSONFrame(nil, &wire.ErrorAnswer{}))
	f.Fuzz(func(t *testing.T, cache bool, b []byte) {
		client := &Client{}
		client.entry = newTarget(client, "")
		l := &lane{
			client: client, kind: publishLane, slots: make(chan struct{}, 8), wake: make(chan struct{}, 1),
			control: &control{link: &link{}, pool: client.entry.publishLinks},
		}
		client.seeds.configured = []string{"fuzz"}
		if cache {
			l.kind = cacheLane
		}
		for id := range uint64(4) {
			r := &request{what: &publication{verb: "fuzz"}, id: id + 1, silent: id == 1, done: make(chan struct{})}
			l.slots <- struct{}{}
			l.pending.push(r)
		}
		frames := newFrameReader(bytes.NewReader(b), wire.MaxPayload)
		for {
			header, payload, err := frames.next()
			if err == nil {
				err = l.take(header, payload)
			}
			if len(l.slots) != l.pending.len() {
				t.Fatalf("%d slots for %d requests", len(l.slots), l.pending.len())
			}
			if err != nil {
				return
			}
		}
	})
}
