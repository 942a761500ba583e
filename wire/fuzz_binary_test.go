package wire

import (
	"bytes"
	"slices"
	"testing"
)

// Each target has the vectors of its layout as seeds, and a small corpus under testdata/fuzz that go test always runs.

// fuzzLayout fuzzes a binary decoder under the flags listed, which says which of them.
func fuzzLayout(f *testing.F, l layout, flags []Flags) {
	add := func(frame []byte) {
		h, err := ParseHeader(frame, MaxPayload)
		if which := slices.Index(flags, h.Flags); err == nil && which >= 0 {
			f.Add(uint8(which), frame[HeaderSize:])
		}
	}
	v := loadVectors(f)
	for _, frame := range v.Frames {
		add(unhex(f, frame.Hex))
	}
	for _, r := range v.Refused {
		add(unhex(f, r.Hex))
	}
	f.Fuzz(func(t *testing.T, which uint8, payload []byte) {
		l.check(t, flags[int(which)%len(flags)], payload)
	})
}

// publishLayout: the way in and out of a publish.
func publishLayout() layout {
	return layout{
		decode: func(flags Flags, payload []byte) (any, error) {
			var p Publish
			err := p.Decode(flags, payload)
			return &p, err
		},
		encode: func(_ Flags, v any) []byte { return AppendPublish(nil, v.(*Publish)) },
		exact:  true,
	}
}

// ackLayout: unknown classes, number 0 and long texts are normalised once.
func ackLayout() layout {
	return layout{
		decode: func(flags Flags, payload []byte) (any, error) { return DecodePublishAck(flags, payload) },
		encode: func(_ Flags, v any) []byte {
			a := v.(PublishAck)
			return AppendPublishAck(nil, &a, Grant{Flags: KnownFlags})
		},
	}
}

// eventLayout: a batch whose events have different timestamps decodes, and has no encoding in one piece.
func eventLayout() layout {
	return layout{
		decode: func(flags Flags, payload []byte) (any, error) { return DecodeEventBatch(flags, payload) },
		encode: func(flags Flags, v any) []byte {
			e, ok := eventBatchOf(v.(DecodedEvents))
			if !ok {
				return nil
			}
			return AppendEventBatch(nil, flags, &e)
		},
		exact: true,
	}
}

// eventBatchOf makes a decoded batch one to be encoded; false when its timestamps differ.
func eventBatchOf(d DecodedEvents) (e EventBatch, ok bool) {
	e = EventBatch{SubscriptionID: d.SubscriptionID, HasOffset: d.HasOffset, BaseOffset: d.BaseOffset,
		SkippedBefore: d.SkippedBefore, Publisher: d.Publisher, Timestamps: d.Timestamps, Count: d.Count}
	events := uint32(0)
	for p, micros, more := d.Next(); more; p, micros, more = d.Next() {
		if events > 0 && micros != e.TimestampMicros {
			return e, false
		}
		e.TimestampMicros = micros
		e.Region = AppendPayload(e.Region, p)
		events++
	}
	return e, events == e.Count
}

// formsOf are all legal flags of a broker's frame of the layout that base names.
func formsOf(base Flags) []Flags {
	var forms []Flags
	for f := range KnownFlags + 1 {
		if f&(eventBases|FlagPublishAck) == base && f.CheckServerToClient() == nil {
			forms = append(forms, f)
		}
	}
	return forms[:len(forms):len(forms)]
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

func FuzzPublishPlain(f *testing.F)      { fuzzLayout(f, publishLayout(), []Flags{0x0001}) }
func FuzzPublishAcked(f *testing.F)      { fuzzLayout(f, publishLayout(), []Flags{0x0009}) }
func FuzzPublishKeyed(f *testing.F)      { fuzzLayout(f, publishLayout(), []Flags{0x0041, 0x0049}) }
func FuzzPublishIdempotent(f *testing.F) { fuzzLayout(f, publishLayout(), []Flags{0x0109, 0x0149}) }
func FuzzPublishAck(f *testing.F)        { fuzzLayout(f, ackLayout(), formsOf(FlagPublishAck)) }
func FuzzEventBatchLegacy(f *testing.F)  { fuzzLayout(f, eventLayout(), formsOf(FlagEventBatch)) }
func FuzzEventBatchShared(f *testing.F) {
	fuzzLayout(f, eventLayout(), formsOf(FlagEventBatchShared))
}

func FuzzRegionCheck(f *testing.F) {
	f.Add([]byte(regionOf("a", "", "bc")), uint32(3))
	f.Add([]byte{0, 0, 0, 9, 1}, uint32(1))
	f.Add([]byte{}, uint32(1<<32-1))
	f.Fuzz(func(t *testing.T, b []byte, count uint32) {
		r, size, err := CheckRegion(b, count)
		if err != nil {
			checkTyped(t, err)
			return
		}
		if r.Count() != count || len(r) != size+int(count)*PayloadOverhead || !bytes.HasPrefix(b, r) {
			t.Fatalf("%x: %d payloads of %d bytes", r, r.Count(), size)
		}
	})
}

func FuzzRegionCut(f *testing.F) {
	f.Add([]byte(regionOf("a", "", "bc")), uint32(3), 2, 10)
	f.Add([]byte(regionOf("", "", "")), uint32(2), -1, -1)
	f.Fuzz(func(t *testing.T, b []byte, count uint32, maxEvents, maxBytes int) {
		r, _, err := CheckRegion(b, count)
		if err != nil {
			return // FuzzRegionCheck looks at it
		}
		var payloads [][]byte
		for p, rest, ok := r.Next(); ok; p, rest, ok = rest.Next() {
			payloads = append(payloads, p)
		}
		checkCuts(t, r, payloads, maxEvents, maxBytes)
	})
}
