package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

// Each target has the vectors as seeds, and a small corpus under testdata/fuzz that go test always runs.

func seedFrames(f *testing.F, layout string) {
	f.Helper()
	v := loadVectors(f)
	for _, frame := range v.Frames {
		if frame.Layout == layout {
			b := unhex(f, frame.Hex)
			f.Add(uint16(b[6])<<8|uint16(b[7]), b[HeaderSize:])
		}
	}
	for _, r := range v.Refused {
		if b := unhex(f, r.Hex); r.Stage == "layout" || r.Stage == "flags" {
			f.Add(uint16(b[6])<<8|uint16(b[7]), b[HeaderSize:])
		}
	}
}

// checkTyped fails on an error that a caller could not tell apart.
func checkTyped(t *testing.T, err error) {
	t.Helper()
	if stageOf(err) == "none" || err.Error() == "" {
		t.Fatalf("untyped error %#v", err)
	}
}

func FuzzHeader(f *testing.F) {
	for _, frame := range loadVectors(f).Frames {
		f.Add(unhex(f, frame.Hex)[:HeaderSize], uint32(MaxPayload))
	}
	f.Add([]byte("FLXI\x00\x01\x00\x00\x00\x00\x00\x00"), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, limit uint32) {
		h, err := ParseHeader(b, limit)
		if err != nil {
			checkTyped(t, err)
			return
		}
		if h.Length > limit || !bytes.Equal(AppendHeader(nil, h), b[:HeaderSize]) {
			t.Fatalf("%x parsed as %+v with limit %d", b, h, limit)
		}
	})
}

func FuzzPublish(f *testing.F) {
	seedFrames(f, "publish")
	f.Fuzz(func(t *testing.T, flags uint16, payload []byte) {
		var p, again Publish
		if err := p.Decode(Flags(flags), payload); err != nil {
			checkTyped(t, err)
			return
		}
		frame := AppendPublish(nil, &p)
		if err := again.Decode(Flags(flags), frame[HeaderSize:]); err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("%+v comes back as %+v, %v", p, again, err)
		}
		if !bytes.HasPrefix(payload, frame[HeaderSize:]) {
			t.Fatalf("%x encodes to %x", payload, frame[HeaderSize:])
		}
	})
}

func FuzzPublishAck(f *testing.F) {
	seedFrames(f, "publish_ack")
	f.Fuzz(func(t *testing.T, flags uint16, payload []byte) {
		a, err := DecodePublishAck(Flags(flags), payload)
		if err != nil {
			checkTyped(t, err)
			return
		}
		// Unknown classes, number 0 and long texts are normalised once; from then on nothing may change.
		once := AppendPublishAck(nil, &a, Grant{Flags: KnownFlags})
		b, err := DecodePublishAck(ackFlagsOf(t, once), once[HeaderSize:])
		if err != nil {
			t.Fatal(err)
		}
		twice := AppendPublishAck(nil, &b, Grant{Flags: KnownFlags})
		if !bytes.Equal(once, twice) || a.RequestID != b.RequestID || (a.Refusal == nil) != (b.Refusal == nil) || !reflect.DeepEqual(a.Owner, b.Owner) {
			t.Fatalf("%+v comes back as %+v", a, b)
		}
	})
}

func ackFlagsOf(t *testing.T, frame []byte) Flags {
	t.Helper()
	flags, _ := split(t, frame)
	return flags
}

func FuzzEventBatch(f *testing.F) {
	seedFrames(f, "events")
	f.Fuzz(func(t *testing.T, flags uint16, payload []byte) {
		d, err := DecodeEventBatch(Flags(flags), payload)
		if err != nil {
			checkTyped(t, err)
			return
		}
		e := EventBatch{SubscriptionID: d.SubscriptionID, HasOffset: d.HasOffset, BaseOffset: d.BaseOffset,
			SkippedBefore: d.SkippedBefore, Publisher: d.Publisher, Timestamps: d.Timestamps, Count: d.Count}
		events, sameStamp := uint32(0), true
		for p, micros, ok := d.Next(); ok; p, micros, ok = d.Next() {
			sameStamp = sameStamp && (events == 0 || micros == e.TimestampMicros)
			e.TimestampMicros = micros
			e.Region = AppendPayload(e.Region, p)
			events++
		}
		if events != e.Count {
			t.Fatalf("%d events came, %d were announced", events, e.Count)
		}
		frame := AppendEventBatch(nil, Flags(flags), &e)
		if sameStamp && !bytes.HasPrefix(payload, frame[HeaderSize:]) {
			t.Fatalf("%x encodes to %x", payload, frame[HeaderSize:])
		}
	})
}

func FuzzRegion(f *testing.F) {
	f.Add([]byte(regionOf("a", "", "bc")), uint32(3), 2, 10)
	f.Add([]byte{0, 0, 0, 9, 1}, uint32(1), 0, 0)
	f.Add([]byte{}, uint32(1<<32-1), -1, -1)
	f.Fuzz(func(t *testing.T, b []byte, count uint32, maxEvents, maxBytes int) {
		r, size, err := CheckRegion(b, count)
		if err != nil {
			checkTyped(t, err)
			return
		}
		if r.Count() != count || len(r) != size+int(count)*PayloadOverhead || !bytes.HasPrefix(b, r) {
			t.Fatalf("%x: %d payloads of %d bytes", r, r.Count(), size)
		}
		var joined Region
		for rest := r; len(rest) > 0; {
			head, n, next := rest.Cut(maxEvents, maxBytes)
			if n == 0 || head.Count() != n {
				t.Fatalf("cut %d payloads, the head holds %d", n, head.Count())
			}
			joined = append(joined, head...)
			rest = next
		}
		if !bytes.Equal(joined, r) {
			t.Fatalf("%x was cut into %x", r, joined)
		}
	})
}

func FuzzJSON(f *testing.F) {
	v := loadVectors(f)
	for _, j := range v.JSON {
		f.Add([]byte(j.Text))
	}
	for _, a := range v.Accepted {
		f.Add([]byte(a.Text))
	}
	for _, r := range v.Refused {
		if r.Stage == "json" || r.Stage == "type" {
			f.Add(unhex(f, r.Hex)[HeaderSize:])
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		typ, _, peekErr := PeekJSON(payload)
		m, err := DecodeJSON(payload)
		if err != nil {
			checkTyped(t, err)
			var unknown *UnknownTypeError
			if errors.As(err, &unknown) && !json.Valid(payload) {
				t.Fatalf("%q is no JSON and was taken for an unknown type", payload)
			}
			return
		}
		if !json.Valid(payload) || peekErr != nil || typ != m.MessageType() {
			t.Fatalf("%q decoded as %q; peek says %q, %v", payload, m.MessageType(), typ, peekErr)
		}
		text := AppendJSON(nil, m)
		again, err := DecodeJSON(text)
		if err != nil || !reflect.DeepEqual(m, again) || !json.Valid(text) {
			t.Fatalf("%q comes back as %q, %v", payload, text, err)
		}
	})
}
