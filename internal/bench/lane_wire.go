package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// Encoding is how publishes are written.
type Encoding string

// Encodings.
const (
	Binary Encoding = "binary"
	JSON   Encoding = "json"
)

// WirePlan is a publisher that speaks the protocol by itself: it shows what the broker costs without our client, and what an encoding
// costs, since our client writes JSON only to brokers that read nothing else.
type WirePlan struct {
	Addr              string
	TLS               *tls.Config
	Tenant, Token     string
	Namespace, Stream string
	Shape             Shape
	Conns             int
	Keys              [][]byte // one for each stream; see ShardKeys
	Encoding          Encoding
}

// OpenWire dials, opens all streams and signs in on each.
func OpenWire(ctx context.Context, p WirePlan) (*Publisher, error) {
	conns, err := dialAll(ctx, p.Conns, func() (*quic.Conn, error) {
		return transport.DialConn(ctx, transport.DialOptions{Addr: p.Addr, TLS: p.TLS})
	})
	if err != nil {
		return nil, err
	}
	pub := &Publisher{Close: conns.close}
	for i, key := range p.Keys {
		lane, err := openWireLane(ctx, conns.of(i), p, key)
		if err != nil {
			return nil, errors.Join(err, conns.close(ctx))
		}
		pub.Lanes = append(pub.Lanes, lane)
	}
	return pub, nil
}

// wireLane is one authenticated stream.
type wireLane struct {
	stream  *quic.Stream
	plan    *WirePlan
	key     []byte
	records *records

	region wire.Region
	buf    []byte // frames that are to be written
	next   uint64 // id of the next request

	answers *bufio.Reader
	body    []byte
}

func openWireLane(ctx context.Context, conn *quic.Conn, p WirePlan, key []byte) (*wireLane, error) {
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	l := &wireLane{
		stream: stream, plan: &p, key: key, records: newRecords(p.Shape),
		answers: bufio.NewReaderSize(stream, 16<<10), buf: make([]byte, 0, writeBytes),
	}
	stop := context.AfterFunc(ctx, func() { transport.AbortStream(stream, transport.StreamFinished) })
	defer stop()
	if err := l.signIn(); err != nil {
		transport.AbortStream(stream, transport.StreamFinished)
		return nil, fmt.Errorf("sign in: %w", err)
	}
	return l, nil
}

// signIn offers what the encoding needs and checks that the broker takes it.
func (l *wireLane) signIn() error {
	var flags wire.Flags
	if l.plan.Encoding == Binary {
		flags = wire.FlagPublishBatch | wire.FlagPublishAcked | wire.FlagPublishKeyed | wire.FlagPublishAck
	}
	auth := &wire.Auth{
		TenantID: l.plan.Tenant, Token: l.plan.Token, ClientFlags: wire.Some(flags),
		ClientFeatures: wire.Some(wire.FeatureErrorCodes | wire.FeaturePublishPipeline | wire.FeatureStreamPublishWindow),
	}
	if _, err := l.stream.Write(wire.AppendJSONFrame(nil, auth)); err != nil {
		return err
	}
	header, payload, err := l.frame()
	if err != nil {
		return err
	}
	if header.Flags != 0 {
		return fmt.Errorf("the broker answered with flags %v", header.Flags)
	}
	answer, err := wire.DecodeJSON(payload)
	if err != nil {
		return err
	}
	switch m := answer.(type) {
	case *wire.AuthOK:
		if granted := m.Offer().Flags; !granted.Has(flags) {
			return fmt.Errorf("the broker offers flags %v, and %v are needed", granted, flags)
		}
		return nil
	case *wire.ErrorAnswer:
		return m.Refusal()
	}
	return fmt.Errorf("the broker answered %s", answer.MessageType())
}

// Send implements Lane.
func (l *wireLane) Send(ctx context.Context, b Batch) error {
	before := len(l.buf)
	l.encode(b)
	if before > 0 && len(l.buf) > writeBytes { // it does not fit the write that was begun
		if _, err := l.stream.Write(l.buf[:before]); err != nil {
			return err
		}
		l.buf = l.buf[:copy(l.buf, l.buf[before:])]
	}
	if len(l.buf) < writeBytes {
		return nil
	}
	return l.Flush(ctx)
}

// encode appends the frame of a batch.
func (l *wireLane) encode(b Batch) {
	l.region = l.region[:0]
	for _, p := range l.records.fill(b) {
		l.region = wire.AppendPayload(l.region, p)
	}
	ack := wire.AckNone
	if b.Acked {
		ack = wire.AckPerBatch
	}
	l.next++
	if l.plan.Encoding == Binary {
		l.buf = wire.AppendPublish(l.buf, &wire.Publish{
			RequestID: l.next, Ack: ack, Key: l.key, Keyed: l.key != nil, Tenant: []byte(l.plan.Tenant),
			Namespace: []byte(l.plan.Namespace), Stream: []byte(l.plan.Stream), Count: uint32(l.plan.Shape.Batch), Region: l.region,
		})
		return
	}
	m := &wire.PublishBatchMessage{
		TenantID: l.plan.Tenant, Namespace: l.plan.Namespace, Stream: l.plan.Stream, Records: l.region, Count: uint32(l.plan.Shape.Batch), Ack: ack,
	}
	if b.Acked {
		m.RequestID = wire.Some(l.next)
	}
	if l.key != nil {
		m.Key = wire.Some(l.key)
	}
	l.buf = wire.AppendJSONFrame(l.buf, m)
}

// Flush implements Lane.
func (l *wireLane) Flush(context.Context) error {
	if len(l.buf) == 0 {
		return nil
	}
	_, err := l.stream.Write(l.buf)
	l.buf = l.buf[:0]
	return err
}

// Settle implements Lane.
func (l *wireLane) Settle(context.Context) error {
	header, payload, err := l.frame()
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if header.Flags != 0 {
		ack, err := wire.DecodePublishAck(header.Flags, payload)
		if err == nil && ack.Refusal != nil {
			err = &RefusedError{ack.Refusal}
		}
		return err
	}
	answer, err := wire.DecodeJSON(payload)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	switch m := answer.(type) {
	case *wire.PublishOK:
		return nil
	case *wire.PublishError:
		return &RefusedError{m.Refusal()}
	case *wire.ErrorAnswer:
		return m.Refusal()
	}
	return fmt.Errorf("the broker answered a publish with %s", answer.MessageType())
}

// frame reads one frame. Answers to publishes are short; a longer one is not read.
func (l *wireLane) frame() (wire.Header, []byte, error) {
	var head [wire.HeaderSize]byte
	if _, err := io.ReadFull(l.answers, head[:]); err != nil {
		return wire.Header{}, nil, err
	}
	h, err := wire.ParseHeader(head[:], wire.MaxPreauthPayload)
	if err != nil {
		return wire.Header{}, nil, err
	}
	if cap(l.body) < int(h.Length) {
		l.body = make([]byte, h.Length)
	}
	l.body = l.body[:h.Length]
	_, err = io.ReadFull(l.answers, l.body)
	return h, l.body, err
}
