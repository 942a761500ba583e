package wire

import (
	"bytes"
	"errors"
	"math/rand"
	"testing"
)

func somePublish(flags Flags) *Publish {
	return &Publish{Flags: flags, RequestID: 77, Ack: AckPerBatch, ProducerID: 5, Sequence: 6, Key: []byte("user-42"),
		Tenant: []byte("t1"), Namespace: []byte("default"), Stream: []byte("demo"), Count: 2, Region: regionOf("a", "bc")}
}

var publishFlags = []Flags{0x0001, 0x0041, 0x0009, 0x0049, 0x0109, 0x0149}

func TestAPublishDecodesToWhatWasEncoded(t *testing.T) {
	for _, flags := range publishFlags {
		in := somePublish(flags)
		got, payload := split(t, AppendPublish(nil, in))
		p := Publish{Key: []byte("left over"), Sequence: 9, Keyed: true, HasRequestID: true}
		if err := p.Decode(got, payload); err != nil {
			t.Fatalf("%04x: %v", flags, err)
		}
		acked, keyed, idempotent := flags.Has(FlagPublishAcked), flags.Has(FlagPublishKeyed), flags.Has(FlagPublishIdempotent)
		if p.HasRequestID != acked || p.RequestID != pick(acked, in.RequestID) || p.Ack != AckMode(pick(acked, 2)) {
			t.Errorf("%04x: request %d %v, ack %v", flags, p.RequestID, p.HasRequestID, p.Ack)
		}
		if p.Keyed != keyed || keyed && !bytes.Equal(p.Key, in.Key) || !keyed && p.Key != nil {
			t.Errorf("%04x: key %q %v", flags, p.Key, p.Keyed)
		}
		if p.ProducerID != pick(idempotent, in.ProducerID) || p.Sequence != pick(idempotent, in.Sequence) {
			t.Errorf("%04x: producer %d, sequence %d", flags, p.ProducerID, p.Sequence)
		}
		if p.PayloadBytes != 3 || p.Count != 2 || !bytes.Equal(p.Region, in.Region) {
			t.Errorf("%04x: %d records, %d bytes", flags, p.Count, p.PayloadBytes)
		}
	}
}

func pick(have bool, v uint64) uint64 {
	if have {
		return v
	}
	return 0
}

func TestTheRequestIDSurvivesEveryCut(t *testing.T) {
	for _, flags := range publishFlags {
		_, payload := split(t, AppendPublish(nil, somePublish(flags)))
		for n := range payload {
			var p Publish
			err := p.Decode(flags, payload[:n])
			var le *LayoutError
			if !errors.As(err, &le) || le.Layout != "publish" {
				t.Fatalf("%04x cut at %d: %v", flags, n, err)
			}
			if want := flags.Has(FlagPublishAcked) && n >= 8; p.HasRequestID != want || want && p.RequestID != 77 {
				t.Fatalf("%04x cut at %d: request id %d %v", flags, n, p.RequestID, p.HasRequestID)
			}
		}
	}
}

func TestTheRequestIDSurvivesIllegalFlags(t *testing.T) {
	var p Publish
	err := p.Decode(0x8009, []byte{0, 0, 0, 0, 0, 0, 0, 9, 1})
	var fe *FlagsError
	if !errors.As(err, &fe) || !p.HasRequestID || p.RequestID != 9 {
		t.Errorf("%v, request id %d %v", err, p.RequestID, p.HasRequestID)
	}
	if err := p.Decode(0, []byte(`{}`)); !errors.As(err, &fe) {
		t.Errorf("JSON as a publish: %v", err)
	}
}

func TestDecodedPublishBorrowsItsPayload(t *testing.T) {
	_, payload := split(t, AppendPublish(nil, somePublish(0x0149)))
	var p Publish
	if err := p.Decode(0x0149, payload); err != nil {
		t.Fatal(err)
	}
	for i := range payload {
		payload[i] = 'X'
	}
	if string(p.Key) != "XXXXXXX" || string(p.Stream) != "XXXX" || p.Region[0] != 'X' {
		t.Error("a field was copied")
	}
	if cap(p.Key) != len(p.Key) || cap(p.Region) != len(p.Region) {
		t.Error("appending to a field would write into the payload")
	}
}

func TestPublishCodecAllocatesNothing(t *testing.T) {
	for _, flags := range publishFlags {
		in := somePublish(flags)
		frame := AppendPublish(nil, in)
		var p Publish
		if n := testing.AllocsPerRun(100, func() {
			if err := p.Decode(flags, frame[HeaderSize:]); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%04x: %v allocations to decode", flags, n)
		}
		if n := testing.AllocsPerRun(100, func() { frame = AppendPublish(frame[:0], in) }); n != 0 {
			t.Errorf("%04x: %v allocations to encode", flags, n)
		}
	}
}

func TestPublishEncoderRefusesWhatNoClientMaySend(t *testing.T) {
	for _, flags := range []Flags{0x0008, 0x0101, 0x0004, 0x8001} {
		if !panics(func() { AppendPublish(nil, somePublish(flags)) }) {
			t.Errorf("flags %04x were encoded", flags)
		}
	}
	long := somePublish(0x0041)
	long.Key = make([]byte, MaxKeyBytes+1)
	if !panics(func() { AppendPublish(nil, long) }) {
		t.Error("a key of 64 KiB was encoded")
	}
}

func TestAPublishWithoutFlagsIsEncodedByItsFields(t *testing.T) {
	for _, flags := range []Flags{0x0001, 0x0041, 0x0009, 0x0049} {
		p := somePublish(flags)
		want := AppendPublish(nil, p)
		p.Flags, p.Keyed = 0, flags.Has(FlagPublishKeyed)
		if !flags.Has(FlagPublishAcked) {
			p.Ack = AckNone
		}
		if got := AppendPublish(nil, p); !bytes.Equal(got, want) {
			t.Errorf("%04x: %x, want %x", flags, got, want)
		}
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

func TestAckModesHaveTheirNames(t *testing.T) {
	for m := AckNone; m <= AckPerBatch; m++ {
		if got, ok := ParseAckMode(m.String()); !ok || got != m {
			t.Errorf("%v comes back as %v", m, got)
		}
	}
	if _, ok := ParseAckMode("ack_mode_3"); ok || AckMode(3).String() != "ack_mode_3" {
		t.Error("mode 3 is none")
	}
}

func TestRandomBytesNeverPanicAPublish(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for range 20000 {
		b := make([]byte, rng.Intn(64))
		rng.Read(b)
		for i := range b { // small numbers reach deeper
			if rng.Intn(3) > 0 {
				b[i] = 0
			}
		}
		var p Publish
		if err := p.Decode(publishFlags[rng.Intn(len(publishFlags))], b); err == nil && p.Region.Count() != p.Count {
			t.Fatalf("%x: count %d, region holds %d", b, p.Count, p.Region.Count())
		}
	}
}
