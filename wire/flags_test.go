package wire

import (
	"errors"
	"testing"
)

// legalFlags lists every legal combination, written out of the protocol document rather than derived from the rules
// under test.
func legalFlags() (client, broker map[Flags]bool) {
	client = map[Flags]bool{0: true, 0x0001: true, 0x0041: true, 0x0009: true, 0x0049: true, 0x0109: true, 0x0149: true}
	broker = map[Flags]bool{0: true}
	for _, owner := range []Flags{0, 0x0080} {
		for _, part := range []Flags{0, 0x1000, 0x0200, 0x0600} {
			broker[0x0010|owner|part] = true
		}
	}
	for _, base := range []Flags{0x0002, 0x0004} {
		for _, offsets := range []Flags{0, 0x0020, 0x0820} {
			for _, publisher := range []Flags{0, 0x2000} {
				broker[base|offsets|publisher] = true
				broker[base|offsets|publisher|0x4000] = true
			}
		}
	}
	return client, broker
}

// mission 179, 184
func TestOfAllFlagsExactlyTheListedCombinationsAreLegal(t *testing.T) {
	client, broker := legalFlags()
	if len(client) != 7 || len(broker) != 1+8+24 {
		t.Fatalf("the lists have %d and %d entries", len(client), len(broker))
	}
	for i := 0; i <= 0xFFFF; i++ {
		f := Flags(i)
		for _, side := range []struct {
			err   error
			legal bool
		}{{f.CheckClientToServer(), client[f]}, {f.CheckServerToClient(), broker[f]}} {
			if (side.err == nil) != side.legal {
				t.Fatalf("flags %04x: %v, legal is %v", i, side.err, side.legal)
			}
			var fe *FlagsError
			if side.err != nil && (!errors.As(side.err, &fe) || fe.Flags != f || fe.Bits == 0 || fe.Bits&^f != 0 || fe.Why == "") {
				t.Fatalf("flags %04x: error %#v does not name the bits", i, side.err)
			}
			if fe != nil && fe.Unknown != (f&0x8000 != 0) {
				t.Fatalf("flags %04x: unknown is %v", i, fe.Unknown)
			}
		}
	}
}

func TestFlagsErrorNamesBitsAndRule(t *testing.T) {
	err := Flags(0x0101).CheckClientToServer()
	const want = "read frame: flags 0x0101: refuse bits 0x0100 (publish_idempotent): an idempotent publish must be acked (0x0008)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if got := Flags(0).String(); got != "json" {
		t.Errorf("no flags are %q", got)
	}
	if got := (FlagEventBatchShared | FlagEventOffsets | 0x8000).String(); got != "event_batch_shared+event_offsets+reserved_0x8000" {
		t.Errorf("got %q", got)
	}
}

func TestKindOfFlagsNeverGuesses(t *testing.T) {
	client, _ := legalFlags()
	for i := 0; i <= 0xFFFF; i++ {
		f, want := Flags(i), KindUnknownFlags
		switch {
		case f == 0x0109 || f == 0x0149:
			want = KindPublishIdempotent
		case f != 0 && client[f]:
			want = KindPublish
		}
		if got := KindOfFlags(f); got != want {
			t.Fatalf("flags %04x are %v, want %v", i, got, want)
		}
	}
}

func TestNoDecoderTakesFlagsItsSenderMayNotSend(t *testing.T) {
	for i := range 1 << 16 {
		flags := Flags(i)
		for _, payload := range [][]byte{nil, make([]byte, 64)} {
			var p Publish
			publish := p.Decode(flags, payload) == nil
			_, ackErr := DecodePublishAck(flags, payload)
			_, eventErr := DecodeEventBatch(flags, payload)
			if publish && (flags == 0 || flags.CheckClientToServer() != nil) {
				t.Fatalf("flags %04x decoded as a publish", i)
			}
			ack, events := ackErr == nil, eventErr == nil
			if (ack || events) && (flags == 0 || flags.CheckServerToClient() != nil) || ack && events {
				t.Fatalf("flags %04x decoded as an ack: %v, as events: %v", i, ack, events)
			}
		}
	}
}
