package testbroker

import (
	"bufio"
	"io"
	"sync"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// Frame is one frame of a client; the payload is the receiver's.
type Frame struct {
	wire.Header
	Payload []byte
}

// Message decodes a JSON frame; nil when it is none or does not decode.
func (f Frame) Message() wire.Message {
	if f.Flags != 0 {
		return nil
	}
	m, err := wire.DecodeJSON(f.Payload)
	if err != nil {
		return nil
	}
	return m
}

// Publish decodes a binary publish; false when it is none.
func (f Frame) Publish() (wire.Publish, bool) {
	var p wire.Publish
	return p, f.Flags != 0 && p.Decode(f.Flags, f.Payload) == nil
}

// Stream is one stream a client opened.
type Stream struct {
	Broker *Broker
	Conn   *quic.Conn
	Auth   wire.Auth  // what the client said
	Grant  wire.Grant // what may be sent to it

	stream *quic.Stream
	writes sync.Mutex
}

// run serves the stream until the client ends it, then ends its own half.
func (s *Stream) run() {
	defer transport.FinishStream(s.stream)
	r := bufio.NewReader(s.stream)
	for first := true; ; first = false {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		switch {
		case first && !s.authenticate(f):
			return
		case first:
		case s.Broker.options.OnFrame != nil && s.Broker.options.OnFrame(s, f):
		default:
			s.Broker.handle(s, f)
		}
	}
}

func readFrame(r io.Reader) (Frame, error) {
	var head [wire.HeaderSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	header, err := wire.ParseHeader(head[:], wire.MaxPayload)
	if err != nil {
		return Frame{}, err
	}
	payload := make([]byte, header.Length)
	_, err = io.ReadFull(r, payload)
	return Frame{header, payload}, err
}

func (s *Stream) authenticate(f Frame) bool {
	auth, ok := f.Message().(*wire.Auth)
	if !ok {
		return false
	}
	s.Auth = *auth
	o := s.Broker.options
	own := wire.Offer{HasFlags: true, Flags: orDefault(o.Flags, DefaultFlags), Features: o.features()}
	s.Grant = wire.Negotiate(auth.Offer(), own)
	var refusal *wire.Refusal
	if o.OnAuth != nil {
		refusal = o.OnAuth(auth)
	} else if auth.Token != Token {
		r := wire.Refuse(wire.CodeUnauthenticated, "unauthorized: token rejected")
		refusal = &r
	}
	if refusal != nil {
		s.Send(wire.ErrorOf(*refusal, s.Grant))
		return false
	}
	answer := own.AuthOK(*auth)
	if s.Grant.Features.Has(wire.FeaturePublishPipeline) {
		answer.PublishWindow = wire.Some(orDefault(o.Window, wire.PublishWindow))
	}
	s.Send(answer)
	return true
}

// Send writes a message.
func (s *Stream) Send(m wire.Message) { s.Raw(wire.AppendJSONFrame(nil, m)) }

// Ack answers a binary publish.
func (s *Stream) Ack(a wire.PublishAck) { s.Raw(wire.AppendPublishAck(nil, &a, s.Grant)) }

// Raw writes bytes. A client that is gone is no business of the broker.
func (s *Stream) Raw(b []byte) {
	s.writes.Lock()
	defer s.writes.Unlock()
	_, _ = s.stream.Write(b)
}

// Finish ends the broker's half.
func (s *Stream) Finish() { _ = s.stream.Close() }

// Reset breaks the stream off.
func (s *Stream) Reset() { transport.AbortStream(s.stream, 9) }

// Refuse sends an error that names no request.
func (s *Stream) Refuse(r wire.Refusal) { s.Send(wire.ErrorOf(r, s.Grant)) }

func (o *Options) features() wire.Features {
	switch {
	case o.Features != 0:
		return o.Features
	case o.Durable:
		return DefaultFeatures | DurableFeatures
	}
	return DefaultFeatures
}

func orDefault[T comparable](v, standard T) T {
	var zero T
	if v == zero {
		return standard
	}
	return v
}
