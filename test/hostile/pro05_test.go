package hostile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/wire"
)

// field case PRO-05: every flag and type a header or message can name, and every version, on both kinds of streams, before and
// after login. Nothing of what is refused is carried out.
//
// mission 186
func TestPRO05_UnknownFrameTypesFlagsAndVersionsAreAnswered(t *testing.T) {
	aside(t)
	h := open(t, setup{})
	p := h.from(t, 11).dial()
	first := p.open() // from here on the connection may open streams that never sign in
	published := h.Metric("felix_published_records_total")
	t.Run("flags", func(t *testing.T) { everyFlag(t, p) })
	t.Run("flags before login", func(t *testing.T) { flagsBeforeLogin(t, p) })
	t.Run("types", func(t *testing.T) { unknownTypes(t, p) })
	t.Run("versions", func(t *testing.T) { everyVersion(t, p) })
	t.Run("features", func(t *testing.T) { futureFeatures(t, p) })
	t.Run("publish only", func(t *testing.T) { publishOnlyStreams(t, h, p) })
	first.alive("in the end")
	if n := h.Metric("felix_published_records_total"); n != published {
		t.Errorf("%v records were published by what was refused", n-published)
	}
}

// publishBody is what a publish to the stream other carries behind its header.
func publishBody() []byte { return batchTo("other", 0, "x")[wire.HeaderSize:] }

func withFlags(flags int) []byte {
	body := publishBody()
	return append(wire.AppendHeader(nil, wire.Header{Flags: wire.Flags(flags), Length: uint32(len(body))}), body...)
}

// everyFlag sends each value of the flags that no client may send: each is answered with a typed refusal and the stream goes on.
func everyFlag(t *testing.T, p *peer) {
	l := p.open()
	l.t = t
	const together = 100 // fewer than the stream's window
	stride := 1
	switch { // of all values, or of some with all of the high byte and of the low one
	case effort.Full():
	case raceEnabled:
		stride = 25
	default:
		stride = 5
	}
	for from := 1; from <= math.MaxUint16; from += together * stride {
		var bytes []byte
		sent := 0
		for flags := from; flags < from+together*stride && flags <= math.MaxUint16; flags += stride {
			if wire.Flags(flags).CheckClientToServer() != nil {
				bytes = append(bytes, withFlags(flags)...)
				sent++
			}
		}
		l.raw(bytes)
		for range sent {
			if r := l.next().refusal(); r == nil || r.Code != wire.CodeInvalidRequest {
				t.Fatalf("flags from 0x%04x: %+v", from, r)
			}
		}
	}
	l.alive("after all flags")
	l.finish()
}

func flagsBeforeLogin(t *testing.T, p *peer) {
	for bit := range 16 {
		for _, flags := range []int{1 << bit, 1<<bit | 1, 0xFFFF &^ (1 << bit)} {
			l := p.bare()
			l.t = t
			l.raw(withFlags(flags))
			f, err := l.read()
			switch {
			case flags == 0x0001 || flags == 0x0041: // a publish that wants no answer gets none
				if !errors.Is(err, io.EOF) {
					t.Errorf("0x%04x: %s, %v", flags, f, err)
				}
			case err != nil || f.refusal() == nil:
				t.Errorf("0x%04x: %s, %v", flags, f, err)
			default:
				l.over(fmt.Sprintf("flags 0x%04x before login", flags))
			}
			l.finish()
		}
	}
}

// unknownTypes: answered unsupported to a client that offered to read that, else the stream is finished; before login refused.
func unknownTypes(t *testing.T, p *peer) {
	l := p.open()
	for _, typ := range []string{"x", "publish_ok", "event_batch", "AUTH", "Publish", "\u202e", "counter_add2", string(make([]byte, 0)) + "z"} {
		l.raw(jsonFrame(fmt.Sprintf(`{"type":%q,"request_id":9,"tenant_id":"t1"}`, typ)))
		f := l.next()
		if u, ok := f.message.(*wire.Unsupported); (!ok || u.RequestType != typ || u.RequestID.V != 9) && f.refusal() == nil {
			t.Errorf("type %q: %s", typ, f)
		}
		old := p.bare()
		old.ask(nothing())
		old.raw(jsonFrame(fmt.Sprintf(`{"type":%q}`, typ)))
		if f, err := old.read(); err == nil && f.refusal() == nil {
			t.Errorf("type %q to a client that offered nothing: %s", typ, f)
		}
		old.finish()
		early := p.bare()
		early.raw(jsonFrame(fmt.Sprintf(`{"type":%q}`, typ)))
		if f := early.next(); f.refusal() == nil {
			t.Errorf("type %q before login: %s", typ, f)
		}
		early.over("type before login")
		early.finish()
	}
	l.alive("after unknown types")
	l.finish()
}

// everyVersion: nothing behind such a header can be trusted, so the stream ends, cleanly, and is counted.
func everyVersion(t *testing.T, p *peer) {
	n := size("frame_versions")
	for i := range n {
		version := i
		if i >= n/2 {
			version = math.MaxUint16 - (i - n/2)
		}
		if version == wire.Version {
			continue
		}
		l := p.bare()
		l.t = t
		if i%2 == 0 {
			l.ask(today())
		}
		b := batchTo("other", 7, "x")
		binary.BigEndian.PutUint16(b[4:], uint16(version))
		_, _ = l.s.Write(b)
		l.over(fmt.Sprintf("version %d", version))
		l.finish()
	}
}

// futureFeatures: bits that nobody knows yet are no mistake, and are not granted.
func futureFeatures(t *testing.T, p *peer) {
	for _, a := range []struct{ flags, features, hi uint64 }{
		{math.MaxUint16, math.MaxUint32, math.MaxUint32}, {0x8000, 0, 0}, {0, 0x8000_0000, 0x8000_0000}, {0, 0, 0},
	} {
		l := p.bare()
		m := nothing()
		m.ClientFlags, m.ClientFeatures, m.ClientFeaturesHi = wire.Some(wire.Flags(a.flags)), wire.Some(wire.Features(a.features)), wire.Some(uint32(a.hi))
		ok, is := l.ask(m).message.(*wire.AuthOK)
		if !is || ok.ServerFlags&^wire.KnownFlags != 0 {
			t.Errorf("%+v: %+v", a, ok)
		}
		l.alive(fmt.Sprintf("features %+v", a))
		l.finish()
	}
}

// publishOnlyStreams cannot be answered: the broker stops reading them, and counts why.
func publishOnlyStreams(t *testing.T, h *house, p *peer) {
	ended := func() float64 { return h.Metric("felix_client_streams_refused_total") }
	before := ended()
	sent := 0.0
	for _, b := range [][]byte{withFlags(0x8000), withFlags(0x0002), jsonFrame(`{"type":"x"}`), jsonFrame(`{"type":"topology"}`), batchTo("other", 5, "x"), jsonFrame("")} {
		for _, login := range []bool{false, true} {
			l := p.publishOnly()
			if login {
				l.raw(wire.AppendJSONFrame(nil, today()))
			}
			_, _ = l.s.Write(b)
			sent++
			eventually(t, "the stream was ended and counted", func() bool { return ended() == before+sent })
			_ = l.s.Close()
		}
	}
}
