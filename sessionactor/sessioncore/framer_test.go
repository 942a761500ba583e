package sessioncore

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/wire"
)

// frameBytes is a whole frame as it travels.
func frameBytes(flags wire.Flags, payload []byte) []byte {
	return append(wire.AppendHeader(nil, wire.Header{Flags: flags, Length: uint32(len(payload))}), payload...)
}

// naive cuts all bytes at once: the twin of a Framer that gets them in pieces.
func naive(b []byte, maxPayload uint32) (list []Frame, rest int, err error) {
	for len(b) >= wire.HeaderSize {
		h, err := wire.ParseHeader(b, maxPayload)
		if err != nil {
			return list, 0, err
		}
		if len(b) < wire.HeaderSize+int(h.Length) {
			return list, len(b), nil
		}
		list = append(list, frameOf(h.Flags, b[wire.HeaderSize:wire.HeaderSize+int(h.Length)]))
		b = b[wire.HeaderSize+int(h.Length):]
	}
	return list, len(b), nil
}

// feed gives b to a framer, at most next() bytes at a time, and says what came of it.
func feed(f *Framer, b []byte, maxPayload uint32, next func() int, each func(Frame)) error {
	for len(b) > 0 {
		room := f.Want()
		if len(room) == 0 {
			return errors.New("the framer wants nothing")
		}
		n := copy(room[:min(len(room), max(1, next()))], b)
		b = b[n:]
		frame, done, err := f.Feed(n, maxPayload)
		if err != nil {
			return err
		}
		if done {
			each(frame)
		}
	}
	return nil
}

func sameFrames(got, want []Frame) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d frames, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Flags != want[i].Flags || !bytes.Equal(got[i].Payload(), want[i].Payload()) {
			return fmt.Errorf("frame %d: flags 0x%04x and %d bytes, want 0x%04x and %d", i, uint16(got[i].Flags), len(got[i].Payload()), uint16(want[i].Flags), len(want[i].Payload()))
		}
	}
	return nil
}

// mission 182
func TestEveryWayToCutAStreamOfBytesGivesTheSameFrames(t *testing.T) {
	var stream []byte
	for i, n := range []int{0, 1, 12, 13, 40, 0, 700} {
		stream = append(stream, frameBytes(wire.Flags(i), bytes.Repeat([]byte{byte('a' + i)}, n))...)
	}
	want, _, _ := naive(stream, wire.MaxPayload)
	// Two cuts: all pairs of places on a short prefix, then all single places of the whole.
	cuts := func(places ...int) {
		var f Framer
		var got []Frame
		from := 0
		for _, to := range append(places, len(stream)) {
			err := feed(&f, stream[from:to], wire.MaxPayload, func() int { return to - from }, func(x Frame) { got = append(got, x) })
			if err != nil {
				t.Fatalf("cut at %v: %v", places, err)
			}
			from = to
		}
		if err := sameFrames(got, want); err != nil {
			t.Fatalf("cut at %v: %v", places, err)
		}
		if !f.Between() {
			t.Fatalf("cut at %v: the framer waits for more", places)
		}
	}
	for i := range stream {
		cuts(i)
	}
	for i := range 130 {
		for j := i; j < 130; j++ {
			cuts(i, j)
		}
	}
}

func TestAnyMixOfFramesAndPiecesIsCutAsTheTwinCutsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		for range rapid.IntRange(0, 8).Draw(t, "frames") {
			n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(firstBody-2, firstBody+2), rapid.IntRange(0, 200<<10)).Draw(t, "length")
			stream = append(stream, frameBytes(wire.Flags(rapid.Uint16().Draw(t, "flags")), bytes.Repeat([]byte{byte(n)}, n))...)
		}
		if rapid.Bool().Draw(t, "unfinished") && len(stream) > 0 {
			stream = stream[:rapid.IntRange(0, len(stream)-1).Draw(t, "end")]
		}
		want, rest, _ := naive(stream, wire.MaxPayload)
		var f Framer
		var got []Frame
		reuse := rapid.Bool().Draw(t, "reuse")
		piece := rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(1, 100<<10))
		err := feed(&f, stream, wire.MaxPayload, func() int { return piece.Draw(t, "piece") }, func(x Frame) {
			kept := x
			if reuse {
				kept.Buffer = bytes.Clone(x.Buffer)
				f.Reuse(x)
			}
			got = append(got, kept)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := sameFrames(got, want); err != nil {
			t.Fatal(err)
		}
		if f.Between() != (rest == 0) || f.InHeader() != (rest < wire.HeaderSize) {
			t.Fatalf("%d bytes are over: between %v, in header %v", rest, f.Between(), f.InHeader())
		}
	})
}

// mission 185: it is refused from its header alone.
func frameByItsPhasesLimit(t *testing.T) {
	for _, phase := range []struct {
		name string
		s    *Stream
		max  uint32
	}{
		{"new", unauthenticated(wire.RoleControl), wire.MaxPreauthPayload},
		{"open", open(t, todayOffered(), rights{}), wire.MaxPayload},
	} {
		limit := phase.s.MaxPayload()
		if limit != phase.max {
			t.Fatalf("%s: the limit is %d, want %d", phase.name, limit, phase.max)
		}
		for _, length := range []uint32{limit, limit + 1, 1<<32 - 1} {
			var f Framer
			copy(f.Want(), wire.AppendHeader(nil, wire.Header{Length: length}))
			_, done, err := f.Feed(wire.HeaderSize, limit)
			var bad *wire.FrameError
			if refused := errors.As(err, &bad) && bad.Kind == wire.TooLong; refused != (length > limit) || done {
				t.Errorf("%s, length %d: %v", phase.name, length, err)
			}
			if length > limit && f.Reserved() != 0 {
				t.Errorf("%s: %d bytes were reserved for a frame that is refused", phase.name, f.Reserved())
			}
		}
	}
}

// allocated is the least number of bytes that f allocates in a few runs.
func allocated(f func()) uint64 {
	least := ^uint64(0)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// mission 170, mission 185
func TestABodyIsNeverAllocatedByItsDeclaredLength(t *testing.T) {
	header := wire.AppendHeader(nil, wire.Header{Flags: wire.FlagPublishBatch, Length: wire.MaxPayload})
	const slack = 1 << 10 // the framer itself, rounded up by the allocator
	if n := allocated(func() {
		f := &Framer{}
		copy(f.Want(), header)
		if _, _, err := f.Feed(len(header), wire.MaxPayload); err != nil {
			t.Fatal(err)
		}
		if len(f.Want()) == 0 {
			t.Fatal("the framer wants nothing")
		}
	}); n > firstBody+slack {
		t.Errorf("a header that claims 16 MiB costs %d bytes, want at most %d", n, firstBody+slack)
	}
	// Further on a sender has to deliver half of what it makes the receiver hold.
	f := &Framer{}
	copy(f.Want(), header)
	if _, _, err := f.Feed(len(header), wire.MaxPayload); err != nil {
		t.Fatal(err)
	}
	for got := 0; got < 3<<20; {
		n := min(1000, len(f.Want()))
		if _, _, err := f.Feed(n, wire.MaxPayload); err != nil {
			t.Fatal(err)
		}
		if got += n; f.Reserved() > max(firstBody, 2*got)+Headroom {
			t.Fatalf("%d bytes are reserved after %d came", f.Reserved(), got)
		}
	}
}

func TestAStreamThatSentLargeFramesIsTrustedWithSixtyFourKiBAndNoMore(t *testing.T) {
	var f Framer
	drop := func(Frame) {}
	if err := feed(&f, frameBytes(0, make([]byte, 300<<10)), wire.MaxPayload, func() int { return 1 << 20 }, drop); err != nil {
		t.Fatal(err)
	}
	if f.Reserved() != 0 {
		t.Errorf("%d bytes are held between frames", f.Reserved())
	}
	copy(f.Want(), wire.AppendHeader(nil, wire.Header{Length: wire.MaxPayload}))
	if _, _, err := f.Feed(wire.HeaderSize, wire.MaxPayload); err != nil {
		t.Fatal(err)
	}
	if f.Reserved() > wire.FirstBodyAllocation+Headroom {
		t.Errorf("%d bytes are reserved for a header", f.Reserved())
	}
}

func TestAnIdleStreamKeepsASmallBufferOnly(t *testing.T) {
	var f Framer
	for _, n := range []int{spareLimit - Headroom, spareLimit, 100 << 10} {
		var got Frame
		if err := feed(&f, frameBytes(0, make([]byte, n)), wire.MaxPayload, func() int { return 1 << 20 }, func(x Frame) { got = x }); err != nil {
			t.Fatal(err)
		}
		f.Reuse(got)
		if cap(f.spare) > spareLimit {
			t.Errorf("%d bytes are kept after a frame of %d", cap(f.spare), n)
		}
	}
	small := frameBytes(0, []byte("small"))
	if n := testing.AllocsPerRun(100, func() {
		_ = feed(&f, small, wire.MaxPayload, func() int { return 100 }, f.Reuse)
	}); n > 1 { // the closure
		t.Errorf("%v allocations for a small frame whose buffer is given back", n)
	}
}

func FuzzFramer(f *testing.F) {
	f.Add(frameBytes(9, []byte("payload")), uint16(3), uint32(64))
	f.Add(append(frameBytes(0, nil), frameBytes(4, make([]byte, 5000))...), uint16(1000), uint32(1<<20))
	f.Add([]byte("FLXI\x00\x01\x00\x00\x00\x00\x00\x00"), uint16(1), uint32(10))
	f.Add(wire.AppendHeader(nil, wire.Header{Length: 1<<32 - 1}), uint16(12), uint32(wire.MaxPayload))
	f.Fuzz(func(t *testing.T, b []byte, piece uint16, limit uint32) {
		limit %= wire.MaxPayload + 1
		want, rest, wantErr := naive(b, limit)
		var fr Framer
		var got []Frame
		step := uint32(piece)
		err := feed(&fr, b, limit, func() int {
			step = step*1664525 + 1013904223
			return int(step>>16) % (int(piece) + 1)
		}, func(x Frame) { got = append(got, x) })
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("error %v, want %v", err, wantErr)
		}
		if err := sameFrames(got, want); err != nil {
			t.Fatal(err)
		}
		if err == nil && fr.Between() != (rest == 0) {
			t.Fatalf("%d bytes are over and between is %v", rest, fr.Between())
		}
		if fr.Reserved() > max(firstBody, 2*len(b))+Headroom {
			t.Fatalf("%d bytes reserved for %d that came", fr.Reserved(), len(b))
		}
	})
}
