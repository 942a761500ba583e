package sessioncore

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

const (
	tenant    = "t1"
	namespace = "default"
	window    = 8
)

// tb is what a test and a property have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// rights is a token's grants: everything in its tenant, except what is denied.
type rights struct{ denied Action }

func (rights) Tenant() string                   { return tenant }
func (rights) Subject() string                  { return "alice" }
func (r rights) Allows(a Action, _ Object) bool { return a != r.denied }

// everything is what a broker offers that serves all there is: whatever a client is sent, it must have offered itself.
func everything() wire.Offer {
	return wire.Offer{HasFlags: true, Flags: wire.KnownFlags, Features: ^wire.Features(0), FeaturesHi: ^uint32(0)}
}

// The offers that clients come with.
func nothingOffered() *wire.Auth { return &wire.Auth{TenantID: tenant, Token: "token"} }

func legacyOffered() *wire.Auth {
	a := nothingOffered()
	a.ClientFlags = wire.Some(wire.LegacyFlags)
	return a
}

// todayOffered is what the reference client of today sends.
func todayOffered() *wire.Auth {
	a := nothingOffered()
	a.ClientFlags, a.ClientFeatures, a.ClientFeaturesHi = wire.Some(wire.Flags(8191)), wire.Some(wire.Features(4218945535)), wire.Some(uint32(15))
	return a
}

// unknownOffered sets every bit that this version does not know, and the marker of the second word.
func unknownOffered() *wire.Auth {
	a := nothingOffered()
	a.ClientFlags, a.ClientFeatures, a.ClientFeaturesHi = wire.Some(^wire.KnownFlags), wire.Some(wire.FeatureExtended), wire.Some(^uint32(0xF))
	return a
}

func allOffered() *wire.Auth {
	a := nothingOffered()
	a.ClientFlags, a.ClientFeatures, a.ClientFeaturesHi = wire.Some(^wire.Flags(0)), wire.Some(^wire.Features(0)), wire.Some(^uint32(0))
	return a
}

// frameOf puts a payload into a frame as the framer does.
func frameOf(flags wire.Flags, payload []byte) Frame {
	return Frame{Flags: flags, Buffer: append(make([]byte, Headroom), payload...)}
}

func message(m wire.Message) Frame { return frameOf(0, wire.AppendJSON(nil, m)) }

func text(format string, args ...any) Frame { return frameOf(0, fmt.Appendf(nil, format, args...)) }

// published is a publish of records of the payload p.
func published(p string, n int) *wire.Publish {
	out := &wire.Publish{Flags: wire.FlagPublishBatch, Tenant: []byte(tenant), Namespace: []byte(namespace), Stream: []byte("orders"), Count: uint32(n)}
	for range n {
		out.Region = wire.AppendPayload(out.Region, []byte(p))
		out.PayloadBytes += len(p)
	}
	return out
}

func binaryFrame(p *wire.Publish) Frame {
	b := wire.AppendPublish(nil, p)
	return frameOf(p.Flags, b[wire.HeaderSize:])
}

func acked(id uint64) Frame {
	p := published("hello", 1)
	p.Flags |= wire.FlagPublishAcked
	p.RequestID, p.Ack = id, wire.AckPerBatch
	return binaryFrame(p)
}

func unacked() Frame { return binaryFrame(published("hello", 1)) }

// cut shortens a frame so that it does not decode.
func cut(f Frame, n int) Frame { return Frame{Flags: f.Flags, Buffer: f.Buffer[:len(f.Buffer)-n]} }

// answer is one frame that a stream sent.
type answer struct {
	flags   wire.Flags
	payload []byte
	message wire.Message    // of a JSON answer
	ack     wire.PublishAck // of a binary one
}

// answers takes apart what a stream sent. Everything must be whole frames that a client can read.
func answers(t tb, b []byte) []answer {
	t.Helper()
	var list []answer
	for len(b) > 0 {
		h, err := wire.ParseHeader(b, 1<<31)
		if err != nil || len(b) < wire.HeaderSize+int(h.Length) {
			t.Fatalf("sent %x, which is no whole frame: %v", b, err)
		}
		a := answer{flags: h.Flags, payload: b[wire.HeaderSize : wire.HeaderSize+int(h.Length)]}
		b = b[wire.HeaderSize+int(h.Length):]
		if h.Flags == 0 {
			a.message, err = wire.DecodeJSON(a.payload)
		} else {
			a.ack, err = wire.DecodePublishAck(h.Flags, a.payload)
		}
		if err != nil {
			t.Fatalf("sent an answer that does not decode: flags 0x%04x, %q: %v", uint16(h.Flags), a.payload, err)
		}
		list = append(list, a)
	}
	return list
}

// String says what an answer means, however it is encoded.
func (a answer) String() string {
	switch m := a.message.(type) {
	case nil:
		return outcome(a.ack.RequestID, a.ack.Refusal == nil)
	case *wire.PublishOK:
		return outcome(m.RequestID, true)
	case *wire.PublishError:
		return outcome(m.RequestID, false)
	case *wire.CacheOK:
		return fmt.Sprintf("cache_ok %d", m.RequestID)
	case *wire.CacheValue:
		return fmt.Sprintf("cache_value %d %q", m.RequestID.V, m.Value.V)
	case *wire.Unsupported:
		return fmt.Sprintf("unsupported %s", m.RequestType)
	default:
		return a.message.MessageType()
	}
}

func outcome(id uint64, ok bool) string {
	if ok {
		return fmt.Sprintf("publish %d ok", id)
	}
	return fmt.Sprintf("publish %d refused", id)
}

// sent takes what the stream has to say.
func sent(t tb, s *Stream) []answer {
	t.Helper()
	list := answers(t, append([]byte(nil), s.Out()...))
	s.Sent()
	return list
}

// one takes the one answer there is.
func one(t tb, s *Stream) answer {
	t.Helper()
	list := sent(t, s)
	if len(list) != 1 {
		t.Fatalf("%d answers %v, want one", len(list), list)
	}
	return list[0]
}

func none(t tb, s *Stream) {
	t.Helper()
	if list := sent(t, s); len(list) != 0 {
		t.Fatalf("sent %v, want nothing", list)
	}
}

// unauthenticated returns a stream that has seen nothing yet.
func unauthenticated(role wire.Role) *Stream { return NewStream(role, everything(), window) }

// open returns a stream of a client that came with auth and was let in; its answer was taken.
func open(t tb, auth *wire.Auth, r Grants) *Stream {
	t.Helper()
	s := unauthenticated(wire.RoleControl)
	letIn(t, s, auth, r)
	sent(t, s)
	s.Released()
	return s
}

func letIn(t tb, s *Stream, auth *wire.Auth, r Grants) {
	t.Helper()
	q := s.Frame(message(auth))
	if q.Do != Authenticate {
		t.Fatalf("auth wants %d, want Authenticate", q.Do)
	}
	s.AuthenticatedAs(q.Token, q.Message.(*wire.Auth), r, nil)
	if !s.Authenticated() {
		t.Fatal("the stream is not open after a good token")
	}
}

// failure is the refusal an answer carries.
func (a answer) failure(t tb) wire.Refusal {
	t.Helper()
	switch m := a.message.(type) {
	case *wire.ErrorAnswer:
		return m.Refusal()
	case *wire.PublishError:
		return m.Refusal()
	case nil:
		if a.ack.Refusal != nil {
			return *a.ack.Refusal
		}
	}
	t.Fatalf("%s is no refusal", a)
	return wire.Refusal{}
}
