package sessioncore

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/felixd/felixd/wire"
)

// Stream is one client stream. It is not safe for concurrent use: its lane has a lock.
//
// Invariants:
//
//  1. open holds every request that was taken and whose answer has not been moved to out, oldest first;
//  2. only the oldest request's answer is moved to out, so answers leave in the order of the requests;
//  3. held is the sum of the permits of open and of overdue requests that are not parked: the bytes of their frames. What was let in and is
//     not held any more is in released until the lane takes it.
type Stream struct {
	role     wire.Role
	phase    wire.Phase
	server   wire.Offer
	window   int
	frame    uint32 // longest payload once signed in, in bytes
	offer    wire.Offer
	grant    wire.Grant
	grants   Grants
	open     ring
	overdue  []overdue // see Expire
	out      []byte
	waiting  int // bytes of answers that wait for an older request's
	sending  int // bytes of answers that were taken and have not left
	held     int
	released int
	cost     int // permits of the frame at hand, until a request takes them

	outcomes      []Outcome // see Outcomes
	unparked      int       // see Unparked
	unparkedBytes int

	draining bool
	gone     bool   // nobody reads answers any more
	over     string // why nothing more is read; "" = it goes on
	fault    string // what the stream was ended for, see Fault
	refused  string // see TakeRefusal
	dropped  int    // frames that were passed over without an answer

	publishes *publishes    // nil before the first, and after a rest
	decoder   *wire.Decoder // of messages; the same
	caches    *cacheRights  // the same
}

// publishes is what a stream keeps from one publish to the next. Many streams never send one.
type publishes struct {
	last    wire.Publish // of the frame at hand, or the last one; borrowed from it
	allowed target       // the last target that was allowed
}

// publishing is where the publish of the frame at hand goes.
func (s *Stream) publishing() *publishes {
	if s.publishes == nil {
		s.publishes = &publishes{}
	}
	return s.publishes
}

// Rest lets go of what is only kept to be quicker: the stream has been idle for a while. A Request of before stays valid.
func (s *Stream) Rest() {
	s.publishes, s.decoder, s.caches = nil, nil, nil
	if len(s.out) == 0 {
		s.out = nil
	}
	if s.open.count == 0 {
		s.open.slots, s.open.head = nil, 0
	}
}

// target is a stream name whose publishing was allowed, so that the next batch to it need not be judged again.
type target struct{ tenant, namespace, stream []byte }

func (t *target) is(p *wire.Publish) bool {
	return bytes.Equal(t.stream, p.Stream) && bytes.Equal(t.namespace, p.Namespace) && bytes.Equal(t.tenant, p.Tenant)
}

func (t *target) set(p *wire.Publish) {
	t.tenant = append(t.tenant[:0], p.Tenant...)
	t.namespace = append(t.namespace[:0], p.Namespace...)
	t.stream = append(t.stream[:0], p.Stream...)
}

// NewStream returns the core of a stream of that role. server is what the broker offers, window how many requests may be
// open at once.
func NewStream(role wire.Role, server wire.Offer, window int) *Stream {
	return &Stream{role: role, phase: wire.PhaseNew, server: server, window: window, frame: wire.MaxPayload}
}

// TakeAtMost bounds the payloads of frames after the token was accepted, in bytes: wire.MaxPreauthPayload to wire.MaxPayload, which is the default. A
// frame whose header announces more ends the stream unread. Call it before the first frame.
func (s *Stream) TakeAtMost(frame uint32) { s.frame = frame }

// Do says what a Request wants of the lane.
type Do uint8

const (
	// Nothing: the core dealt with the frame; look at Out and Ended.
	Nothing Do = iota
	// Authenticate: verify Message, a *wire.Auth, and call Authenticated.
	Authenticate
	// Publish: route Publish and settle Token. Kind says which of its fields count: for KindPublishIf, Message is a *wire.PublishIf with
	// the expected offset.
	Publish
	// Ask: perform Message and settle Token.
	Ask
)

// Request is what a frame asks for. Publish and its bytes are borrowed from the frame.
type Request struct {
	Do      Do
	Token   Token
	Kind    wire.RequestKind
	Publish *wire.Publish
	Message wire.Message
	// Framed is Publish.Region with RegionHeadroom bytes in front of it that may be overwritten once the publish's names and
	// key are not needed any more: an event frame's header goes there.
	Framed []byte
}

// RegionHeadroom is the room in front of a region for the header of an event frame: frame header and count.
const RegionHeadroom = wire.HeaderSize + 4

// keptBeside is how many bytes of a frame may stay alive with a stored region beside it. Names and an ordinary key fit; the
// longest key, or bytes behind the last payload, would not be counted by any budget.
const keptBeside = 1 << 10

// framed returns a decoded binary publish's region together with the bytes in front of it. It is the frame's own memory unless
// too much else would be kept with it.
func framed(f Frame, p *wire.Publish) []byte {
	at := 2 + len(p.Tenant) + 2 + len(p.Namespace) + 2 + len(p.Stream) + 4
	if p.Flags.Has(wire.FlagPublishAcked) {
		at += 8 + 1
	}
	if p.Flags.Has(wire.FlagPublishIdempotent) {
		at += 8 + 8
	}
	if p.Keyed {
		at += 2 + len(p.Key)
	}
	start, end := Headroom+at-RegionHeadroom, Headroom+at+len(p.Region)
	if len(f.Buffer)-(end-start) > keptBeside {
		return ownFramed(p.Region)
	}
	return f.Buffer[start:end:end]
}

// ownFramed copies a region behind the room that a frame header needs.
func ownFramed(r wire.Region) []byte {
	framed := make([]byte, RegionHeadroom+len(r))
	copy(framed[RegionHeadroom:], r)
	return framed
}

// MaxPayload is the largest payload the stream takes in its phase.
func (s *Stream) MaxPayload() uint32 {
	if s.phase == wire.PhaseNew {
		return wire.MaxPreauthPayload
	}
	return s.frame
}

// Room reports whether another frame may be read. While there is none, QUIC's flow control holds the client back. Requests that were
// answered before their outcome count, too.
func (s *Stream) Room() bool { return s.open.count+len(s.overdue) < s.window && s.Owed() < OutLimit }

// Open is how many requests wait for their outcome.
func (s *Stream) Open() int { return s.open.count }

// Authenticated reports whether a token was accepted on this stream.
func (s *Stream) Authenticated() bool { return s.phase == wire.PhaseOpen }

// Grants is what the stream's token allows; nil before it was accepted.
func (s *Stream) Grants() Grants { return s.grants }

// Grant is what may be used on frames sent to this client.
func (s *Stream) Grant() wire.Grant { return s.grant }

// Ended says why the stream takes nothing more; "" while it does.
func (s *Stream) Ended() string { return s.over }

// Finished reports whether the stream is over, everything it owes has been handed out, and nothing is without its outcome.
func (s *Stream) Finished() bool {
	return s.over != "" && s.open.count == 0 && len(s.overdue) == 0 && len(s.out) == 0
}

// Dropped counts frames that were passed over in silence.
func (s *Stream) Dropped() int { return s.dropped }

// Fault names what the broker ended the stream for, as a metric label: bad_magic, bad_version, too_long, partial_frames,
// answers_unread, not_possible, or the code of the refusal that was its last answer. "" when it was not the broker that ended it.
func (s *Stream) Fault() string { return s.fault }

// TakeRefusal names what the stream itself refused since the last call, as a metric label: the code, or unsupported. Each
// call of Frame or TooMuch refuses at most one request. "" is none.
func (s *Stream) TakeRefusal() string {
	r := s.refused
	s.refused = ""
	return r
}

// endFor ends the stream for a fault of its client.
func (s *Stream) endFor(fault, why string) {
	if s.over == "" {
		s.over, s.fault = why, fault
	}
}

// End makes the stream take nothing more. What is open still gets its answers.
func (s *Stream) End(why string) {
	if s.over == "" {
		s.over = why
	}
}

// Drain refuses every later request: the broker is shutting down.
func (s *Stream) Drain() { s.draining = true }

// Frame takes one complete frame, for whose payload the lane holds permits. After the stream ended, frames are passed
// over.
func (s *Stream) Frame(f Frame) (r Request) {
	s.cost = len(f.Payload())
	switch {
	case s.over != "":
	case f.Flags != 0:
		r = s.binary(f)
	default:
		r = s.json(f)
	}
	s.released += s.cost
	s.cost = 0
	return r
}

// take opens a request, which holds the permits of its frame until it is settled.
func (s *Stream) take(sl slot) Token {
	sl.bytes, s.cost = s.cost, 0
	s.held += sl.bytes
	return s.open.push(sl)
}

// BadFrame takes a header that is none: nothing behind it can be trusted.
func (s *Stream) BadFrame(err error) { s.endFor(faultOf(err), "bad frame: "+err.Error()) }

func faultOf(err error) string {
	var bad *wire.FrameError
	if errors.As(err, &bad) {
		switch bad.Kind {
		case wire.BadMagic:
			return "bad_magic"
		case wire.BadVersion:
			return "bad_version"
		case wire.TooLong:
			return "too_long"
		}
	}
	panic(fmt.Sprintf("sessioncore: a framer does not fail with %v", err))
}

// TooMuch ends the stream because its connection, or the node, has too many bytes of unfinished frames.
func (s *Stream) TooMuch() {
	f := wire.Refuse(wire.CodeOverloaded, "too many bytes of unfinished frames; send fewer large frames at a time and repeat this one").WithReason("partial_frames", 100)
	s.settleNow(slot{form: formMessage}, Answer{Refusal: &f})
	s.endFor("partial_frames", "too many bytes of unfinished frames")
}

func (s *Stream) binary(f Frame) Request {
	kind := wire.KindOfFlags(f.Flags)
	p := &s.publishing().last
	err := p.Decode(f.Flags, f.Payload())
	owed := p.Ack != wire.AckNone || f.Flags.Has(wire.FlagPublishAcked)
	sl := slot{kind: kind, form: formSilent, requestID: wire.Opt[uint64]{V: p.RequestID, Set: p.HasRequestID}}
	owed = owed || kind == wire.KindUnknownFlags
	switch {
	case !owed:
	case !p.HasRequestID: // an ack without the right id would be taken for somebody else's
		sl.form = formMessage
	case kind == wire.KindPublishIdempotent:
		sl.form = formPublishAns
	default:
		sl.form = formBinaryAck
	}
	if err != nil && kind != wire.KindUnknownFlags {
		kind = wire.KindMalformed
	}
	if !s.judge(kind, owed, sl, err) {
		return Request{}
	}
	return s.admitPublish(sl, p, framed(f, p))
}

func (s *Stream) json(f Frame) Request {
	m, err := s.decode(f.Payload())
	if err != nil {
		s.badJSON(f, err)
		return Request{}
	}
	kind := wire.RequestKindOf(m)
	switch m := m.(type) {
	case *wire.PublishMessage:
		return s.jsonPublish(m.Publish())
	case *wire.PublishBatchMessage:
		return s.jsonPublish(m.Publish())
	}
	sl := slot{kind: kind, form: formMessage, message: m, unsupported: s.unsupported(kind, m, f)}
	if kind == wire.KindPublishIdempotent {
		sl.answerPublish(wire.RequestIDOf(m))
	}
	if !s.judge(kind, true, sl, nil) {
		return Request{}
	}
	switch m := m.(type) {
	case *wire.Auth:
		return Request{Do: Authenticate, Token: s.take(sl), Kind: kind, Message: m}
	case *wire.PublishIdempotent:
		sl.message = nil
		return s.numberedPublish(sl, m.Publish())
	case *wire.PublishIf:
		p := m.Publish()
		m.Records = nil // p has them, and the slot keeps m
		r := s.numberedPublish(sl, p)
		r.Message = m
		return r
	}
	return s.admitAsk(sl, m)
}

// decode decodes a message. Only a stream that may ask for something keeps a decoder.
func (s *Stream) decode(payload []byte) (wire.Message, error) {
	if s.phase == wire.PhaseNew {
		return wire.DecodeJSON(payload)
	}
	if s.decoder == nil {
		s.decoder = &wire.Decoder{}
	}
	return s.decoder.DecodeJSON(payload)
}

// numberedPublish takes a publish that is a kind of its own and comes as JSON only.
func (s *Stream) numberedPublish(sl slot, p wire.Publish) Request {
	last := &s.publishing().last
	*last = p
	return s.admitPublish(sl, last, ownFramed(p.Region))
}

// unsupported is how a message that decodes and is no request of this broker would be answered; nil for all others.
func (s *Stream) unsupported(kind wire.RequestKind, m wire.Message, f Frame) *wire.Unsupported {
	if x, ok := m.(*wire.Extension); ok {
		return x.Answer()
	}
	if s.server.Serves(kind) {
		return nil
	}
	if kind != wire.KindUnknown {
		return &wire.Unsupported{RequestType: m.MessageType(), RequestID: wire.RequestIDOf(m)}
	}
	typ, requestID, _ := wire.PeekJSON(f.Payload()) // of a type that only a broker sends; it decoded, so it has no mistake
	return &wire.Unsupported{RequestType: typ, RequestID: requestID}
}

// jsonPublish takes a publish that came as JSON. Its region is copied once, behind the room that a frame header needs.
func (s *Stream) jsonPublish(p wire.Publish) Request {
	last := &s.publishing().last
	*last = p
	owed := p.Ack != wire.AckNone
	sl := slot{kind: wire.KindPublish, form: formSilent, requestID: wire.Opt[uint64]{V: p.RequestID, Set: p.HasRequestID}}
	switch {
	case owed && p.HasRequestID:
		sl.form = formPublishAns
	case owed:
		sl.form = formMessage
		s.judge(wire.KindMalformed, true, sl, errors.New("an acknowledged publish needs a request_id"))
		return Request{}
	}
	if !s.judge(wire.KindPublish, owed, sl, nil) {
		return Request{}
	}
	return s.admitPublish(sl, last, ownFramed(p.Region))
}

// badJSON answers what is no message, or none that this broker serves.
func (s *Stream) badJSON(f Frame, err error) {
	sl := slot{form: formMessage}
	var unknown *wire.UnknownTypeError
	if errors.As(err, &unknown) {
		sl.unsupported = unknown.Answer()
		s.judge(unknown.Kind, true, sl, nil)
		return
	}
	typ, requestID, peekErr := wire.PeekJSON(f.Payload())
	if kind := wire.KindOfType(typ); peekErr == nil && kind != wire.KindUnknown && !s.server.Serves(kind) {
		// That it is malformed too is of no use to a client that cannot be served either way.
		sl.unsupported = &wire.Unsupported{RequestType: typ, RequestID: requestID}
		if kind == wire.KindPublishIdempotent {
			sl.answerPublish(requestID)
		}
		s.judge(kind, true, sl, nil)
		return
	}
	kind, asksAnswer := peekPublish(f.Payload())
	owed := kind != wire.KindPublish || asksAnswer
	if kind == wire.KindPublish || kind == wire.KindPublishIdempotent {
		sl.answerPublish(requestID)
	}
	s.judge(wire.KindMalformed, owed, sl, err)
}

// answerPublish makes the answer one under a publish's id, if it has one: what names no request fails its whole stream.
func (sl *slot) answerPublish(requestID wire.Opt[uint64]) {
	if sl.requestID = requestID; requestID.Set {
		sl.form = formPublishAns
	}
}

// judge applies the role-and-phase table; false means that the request is dealt with.
func (s *Stream) judge(kind wire.RequestKind, owed bool, sl slot, cause error) bool {
	v := wire.Judge(s.role, s.phase, kind, owed, s.offer)
	if v.Action == wire.Accept && !s.server.Serves(kind) {
		v = wire.NotServed(kind, s.offer)
	}
	if v.Action == wire.Accept {
		return true
	}
	s.carryOut(v, sl, cause)
	return false
}

// carryOut performs a verdict other than Accept.
func (s *Stream) carryOut(v wire.Verdict, sl slot, cause error) {
	f := v.Refusal
	if cause != nil && f.Message != "" {
		f.Message += ": " + cause.Error()
	}
	switch v.Action {
	case wire.AnswerRefusal:
		s.settleNow(sl, Answer{Refusal: &f})
	case wire.AnswerRefusalAndEnd:
		s.settleNow(sl, Answer{Refusal: &f})
		s.endFor(f.Code.String(), f.Code.String())
	case wire.AnswerUnsupported:
		s.settleNow(sl, Answer{Message: sl.unsupported})
	case wire.EndSilently:
		s.endFor("not_possible", "request not possible on this stream")
	case wire.Drop:
		s.dropped++
	default:
		panic(fmt.Sprintf("sessioncore: no way to carry out %s", v.Action))
	}
}

// settleNow answers a request that was not let in. It keeps its place in the order.
func (s *Stream) settleNow(sl slot, a Answer) {
	s.refused = "unsupported"
	if a.Refusal != nil {
		s.refused = a.Refusal.Code.String()
	}
	s.Settle(s.take(sl), a)
}

// admitPublish checks the right to publish.
func (s *Stream) admitPublish(sl slot, p *wire.Publish, framed []byte) Request {
	if s.draining {
		s.settleNow(sl, Answer{Refusal: drainingRefusal()})
		return Request{}
	}
	allowed := &s.publishing().allowed
	if !allowed.is(p) {
		o := Object{Tenant: string(p.Tenant), Namespace: string(p.Namespace), Name: string(p.Stream)}
		if f := s.permit(ActionPublish, "stream", o); f != nil {
			s.settleNow(sl, Answer{Refusal: f})
			return Request{}
		}
		allowed.set(p)
	}
	return Request{Do: Publish, Token: s.take(sl), Kind: sl.kind, Publish: p, Framed: framed}
}

// admitAsk checks the right a request needs.
func (s *Stream) admitAsk(sl slot, m wire.Message) Request {
	if s.draining {
		s.settleNow(sl, Answer{Refusal: drainingRefusal()})
		return Request{}
	}
	if n := need(m); n.action != 0 {
		if f := s.permit(n.action, n.object, n.on); f != nil {
			s.settleNow(sl, Answer{Refusal: f})
			return Request{}
		}
	} else if n.tenantOnly {
		if f := s.sameTenant(n.on.Tenant); f != nil {
			s.settleNow(sl, Answer{Refusal: f})
			return Request{}
		}
	}
	return Request{Do: Ask, Token: s.take(sl), Kind: sl.kind, Message: m}
}

func drainingRefusal() *wire.Refusal {
	f := wire.Refuse(wire.CodeDraining, "the broker is shutting down; connect again or use another one")
	return &f
}

// AuthenticatedAs settles an Authenticate request: grants is what the token allows, or refusal says why it was not taken.
func (s *Stream) AuthenticatedAs(t Token, auth *wire.Auth, grants Grants, refusal *wire.Refusal) {
	s.offer = auth.Offer()
	s.grant = wire.Negotiate(s.offer, s.server)
	if s.draining {
		refusal = drainingRefusal()
	}
	if refusal != nil {
		s.Settle(t, Answer{Refusal: refusal})
		s.endFor(refusal.Code.String(), refusal.Code.String())
		return
	}
	s.grants, s.phase = grants, wire.PhaseOpen
	if !s.offer.HasFlags {
		s.Settle(t, Answer{Message: &wire.OK{}})
		return
	}
	ok := s.server.AuthOK(*auth)
	if s.server.Features.Has(wire.FeaturePublishPipeline) && s.offer.Features.Has(wire.FeaturePublishPipeline) {
		ok.PublishWindow = wire.Some(uint32(s.window))
	}
	s.Settle(t, Answer{Message: ok})
}

func (s *Stream) sameTenant(tenant string) *wire.Refusal {
	if tenant == s.grants.Tenant() {
		return nil
	}
	f := wire.Refuse(wire.CodeForbidden, fmt.Sprintf("forbidden: the stream is authenticated for tenant %q and the request names tenant %q", s.grants.Tenant(), tenant))
	return &f
}

// permit refuses what the token does not allow, naming the permission that is missing.
func (s *Stream) permit(a Action, kind string, o Object) *wire.Refusal {
	if f := s.sameTenant(o.Tenant); f != nil {
		return f
	}
	if (a == ActionGroupConsume || a == ActionGroupManage) && o.Group == "" { // no grant could name it
		f := wire.Refuse(wire.CodeInvalidRequest, "a group needs a name")
		return &f
	}
	if s.allows(a, o) {
		return nil
	}
	object := fmt.Sprintf("%s:%s/%s/%s", kind, o.Tenant, o.Namespace, o.Name)
	if o.HasKey {
		object += "/" + o.Key
	}
	if o.HasPrefix && o.Prefix != "" {
		object += "/" + o.Prefix + "*"
	}
	if o.Group != "" {
		object += "/" + o.Group
	}
	f := wire.Refuse(wire.CodeForbidden, fmt.Sprintf("forbidden: the token lacks the permission %s on %s", a, object))
	return &f
}
