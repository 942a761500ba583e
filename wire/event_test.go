package wire

import (
	"bytes"
	"testing"
)

func someEvents() *EventBatch {
	return &EventBatch{SubscriptionID: 5, HasOffset: true, BaseOffset: 102, SkippedBefore: 1, Publisher: []byte("alice"),
		Timestamps: true, TimestampMicros: 1760000000000000, Count: 2, Region: regionOf("a", "bc")}
}

func eventFlags() []Flags { return append(formsOf(FlagEventBatch), formsOf(FlagEventBatchShared)...) }

func TestEventsDecodeToWhatWasEncodedInEveryForm(t *testing.T) {
	for _, flags := range eventFlags() {
		in := someEvents()
		got, payload := split(t, AppendEventBatch(nil, flags, in))
		d, err := DecodeEventBatch(got, payload)
		if err != nil {
			t.Fatalf("%04x: %v", flags, err)
		}
		stamped := flags.Has(FlagEventTimestamps)
		if d.Flags != flags || d.Count != 2 || d.Timestamps != stamped || d.HasOffset != flags.Has(FlagEventOffsets) {
			t.Errorf("%04x: %+v", flags, d)
		}
		if uint64(d.BaseOffset) != pick(d.HasOffset, 102) || d.SkippedBefore != pick(flags.Has(FlagEventSkipped), 1) || d.SubscriptionID != pick(flags.Has(FlagEventBatch), 5) {
			t.Errorf("%04x: %+v", flags, d)
		}
		if string(d.Publisher) != map[bool]string{true: "alice"}[flags.Has(FlagEventPublisher)] {
			t.Errorf("%04x: publisher %q", flags, d.Publisher)
		}
		var r Region
		for p, micros, ok := d.Next(); ok; p, micros, ok = d.Next() {
			r = AppendPayload(r, p)
			if micros != pick(stamped, in.TimestampMicros) {
				t.Errorf("%04x: timestamp %d", flags, micros)
			}
		}
		if !bytes.Equal(r, in.Region) {
			t.Errorf("%04x: payloads %x", flags, r)
		}
	}
}

func TestEveryCutOfAnEventFrameIsRefused(t *testing.T) {
	for _, flags := range eventFlags() {
		_, payload := split(t, AppendEventBatch(nil, flags, someEvents()))
		for n := range payload {
			if _, err := DecodeEventBatch(flags, payload[:n]); err == nil {
				t.Fatalf("%04x cut at %d decoded", flags, n)
			}
		}
		if _, err := DecodeEventBatch(flags, append(payload, "trailing"...)); err != nil {
			t.Errorf("%04x: trailing bytes are to be ignored: %v", flags, err)
		}
	}
}

// mission 223
func TestSharedHeaderAndStoredRegionAreAWholeFrame(t *testing.T) {
	for _, r := range []Region{regionOf("a", "bc"), regionOf(""), nil} {
		frame := make([]byte, SharedEventHeaderSize)
		PutSharedEventHeader(frame, r.Count(), len(r))
		frame = append(frame, r...)
		if want := AppendEventBatch(nil, FlagEventBatchShared, &EventBatch{Count: r.Count(), Region: r}); !bytes.Equal(frame, want) {
			t.Errorf("%x, want %x", frame, want)
		}
	}
	if !panics(func() { PutSharedEventHeader(make([]byte, 15), 0, 0) }) {
		t.Error("fifteen bytes were enough")
	}
	if !panics(func() { PutSharedEventHeader(make([]byte, 16), 0, 1<<32-4) }) {
		t.Error("a region of 4 GiB fitted")
	}
}

func TestEventEncoderRefusesWhatItCannotSay(t *testing.T) {
	tests := []struct {
		why   string
		flags Flags
		e     EventBatch
	}{
		{"both bases", 0x0006, EventBatch{}},
		{"no base", 0x0020, EventBatch{HasOffset: true}},
		{"an ack", 0x0010, EventBatch{}},
		{"no offset known", 0x0024, EventBatch{}},
		{"no timestamp known", 0x4004, EventBatch{}},
		{"publisher too long", 0x2004, EventBatch{Publisher: make([]byte, MaxPublisherBytes+1)}},
	}
	for _, tt := range tests {
		if !panics(func() { AppendEventBatch(nil, tt.flags, &tt.e) }) {
			t.Errorf("%s: encoded", tt.why)
		}
	}
	for _, flags := range []Flags{0, 0x0010, 0x0001, 0x8004} {
		if _, err := DecodeEventBatch(flags, make([]byte, 64)); err == nil {
			t.Errorf("flags %04x decoded as events", flags)
		}
	}
}

func TestEventCodecAllocatesNothing(t *testing.T) {
	buf, e := make([]byte, 0, 512), someEvents()
	for _, flags := range eventFlags() {
		frame := AppendEventBatch(nil, flags, e)
		if n := testing.AllocsPerRun(50, func() {
			AppendEventBatch(buf, flags, e)
			d, err := DecodeEventBatch(flags, frame[HeaderSize:])
			if err != nil {
				t.Fatal(err)
			}
			for _, _, ok := d.Next(); ok; _, _, ok = d.Next() {
			}
		}); n != 0 {
			t.Errorf("%04x: %v allocations", flags, n)
		}
	}
}

func TestAnEventHeaderAndItsRegionAreTheWholeFrame(t *testing.T) {
	for _, flags := range eventFlags() {
		if flags.Has(FlagEventTimestamps) {
			if !panics(func() { AppendEventHeader(nil, flags, someEvents()) }) {
				t.Errorf("%04x: no panic for timestamps", flags)
			}
			continue
		}
		e := someEvents()
		if got, want := append(AppendEventHeader([]byte("x"), flags, e), e.Region...), AppendEventBatch([]byte("x"), flags, e); !bytes.Equal(got, want) {
			t.Errorf("%04x: %x, want %x", flags, got, want)
		}
	}
}
