package wire

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
)

// mission 182
func TestHeaderIsTwelveBytesInTheDrawnOrder(t *testing.T) {
	want := []byte{0x46, 0x4C, 0x58, 0x31, 0, 1, 0x7F, 0xFE, 0x01, 0x02, 0x03, 0x04}
	h := Header{Flags: 0x7FFE, Length: 0x01020304}
	if got := AppendHeader([]byte("x"), h); !bytes.Equal(got[1:], want) {
		t.Errorf("AppendHeader = %x, want %x", got[1:], want)
	}
	put := make([]byte, HeaderSize)
	if PutHeader(put, h); !bytes.Equal(put, want) {
		t.Errorf("PutHeader = %x, want %x", put, want)
	}
	if got, err := ParseHeader(want, math.MaxUint32); err != nil || got != h {
		t.Errorf("ParseHeader = %+v, %v", got, err)
	}
}

// mission 4, 183, 185
func TestHeaderMistakesAreJudgedInOrder(t *testing.T) {
	tests := []struct {
		name   string
		change func([]byte)
		want   FrameErrorKind
		text   string
	}{
		{"internal magic", func(b []byte) { b[3] = 'I' }, BadMagic, "0x464c5849"},
		{"magic before version and length", func(b []byte) { b[0], b[5], b[8] = 0, 9, 0xFF }, BadMagic, "FLX1"},
		{"version 2", func(b []byte) { b[5] = 2 }, BadVersion, "version 2"},
		{"version before length", func(b []byte) { b[5], b[8] = 0, 0xFF }, BadVersion, "version 0"},
		{"one over the limit", func(b []byte) { b[10], b[11] = 4, 1 }, TooLong, "1025 bytes"},
		{"4 GiB", func(b []byte) { copy(b[8:], "\xff\xff\xff\xff") }, TooLong, "4294967295"},
	}
	for _, tt := range tests {
		b := AppendHeader(nil, Header{Length: 1024})
		tt.change(b)
		_, err := ParseHeader(b, 1024)
		var fe *FrameError
		if !errors.As(err, &fe) || fe.Kind != tt.want || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want kind %d with %q", tt.name, err, tt.want, tt.text)
		}
	}
	if _, err := ParseHeader(AppendHeader(nil, Header{Length: 1024}), 1024); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
	var fe *FrameError
	if _, err := ParseHeader(make([]byte, HeaderSize-1), 1024); !errors.As(err, &fe) || fe.Kind != ShortHeader {
		t.Errorf("eleven bytes: %v", err)
	}
}

func TestUnknownFlagsDoNotStopTheHeader(t *testing.T) {
	h, err := ParseHeader(AppendHeader(nil, Header{Flags: 0xFFFF, Length: 3}), 64)
	if err != nil || h.Flags != 0xFFFF || h.Length != 3 {
		t.Fatalf("%+v, %v: the body must stay skippable", h, err)
	}
}

func TestBodyBuffersGrowWithWhatArrivesAndNotWithWhatIsAnnounced(t *testing.T) {
	for _, declared := range []int{0, 1, FirstBodyAllocation, FirstBodyAllocation + 1, 1 << 20, MaxPayload} {
		received, steps := 0, 0
		for {
			room := BodyCapacity(received, declared)
			if room > declared || room > max(FirstBodyAllocation, 2*received) {
				t.Fatalf("declared %d, received %d: %d is more than was earned", declared, received, room)
			}
			if room == declared {
				break
			}
			if room <= received {
				t.Fatalf("declared %d: stuck at %d", declared, received)
			}
			received = room
			steps++
		}
		if steps > 8 {
			t.Errorf("declared %d took %d allocations", declared, steps)
		}
	}
}
