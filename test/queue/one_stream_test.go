package queue

import (
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire"
)

// All eleven requests of groups travel on one stream, the same that publishes could, and are answered on it.
//
// mission 259
func TestAllRequestsOfGroupsTravelOnOneStream(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.CreateStream(jobs, 1)
	c := d.Connect()
	ctx, cancel := testkit.Within()
	defer cancel()
	for _, text := range numbered(3) {
		if _, err := c.Publish(ctx, namespace, jobs, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	s := d.signInForAll(d.rawDial())
	to := wire.GroupTarget{TenantID: d.Client().TenantID, Namespace: namespace, Stream: jobs, Group: workers}
	next := func() wire.GroupTarget {
		to.RequestID++
		return to
	}
	for _, x := range []struct {
		request wire.Message
		answer  string
	}{
		{&wire.GroupPoll{GroupTarget: next(), MaxRecords: 3, VisibilityMillis: uint64(hour.Milliseconds())}, "group_records"},
		{&wire.GroupExtend{GroupTarget: next(), Offset: 0, Attempts: 1, ExtendMillis: 60_000}, "group_extended"},
		{&wire.GroupAck{GroupTarget: next(), Offset: 0}, "cache_ok"},
		{&wire.GroupNack{GroupTarget: next(), Offset: 1}, "cache_ok"},
		{&wire.GroupDeadLetter{GroupTarget: next(), Offset: 2}, "cache_ok"},
		{&wire.GroupDeadLetters{GroupTarget: next()}, "group_dead_letter_list"},
		{&wire.GroupRedrive{GroupTarget: next(), Offset: 2}, "cache_ok"},
		{&wire.GroupDiscard{GroupTarget: next(), Offset: 2}, "cache_ok"},
		{&wire.GroupDescribe{GroupTarget: next()}, "group_info"},
		{&wire.GroupSeek{GroupTarget: next(), Start: wire.Start{Kind: wire.StartLatest}}, "group_position"},
		{&wire.GroupDelete{GroupTarget: next()}, "group_deleted"},
	} {
		if _, err := s.Write(wire.AppendJSONFrame(nil, x.request)); err != nil {
			t.Fatal(err)
		}
		m, err := readMessage(s)
		if err != nil {
			t.Fatalf("%s: %v", x.request.MessageType(), err)
		}
		if m.MessageType() != x.answer {
			t.Errorf("%s was answered with %s: %+v", x.request.MessageType(), m.MessageType(), m)
		}
	}
}

// signInForAll opens a stream of a connection for all that groups have.
func (d *daemon) signInForAll(conn *quic.Conn) *quic.Stream {
	d.t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	s := must(conn.OpenStreamSync(ctx))(d.t)
	_, err := s.Write(wire.AppendJSONFrame(nil, &wire.Auth{
		TenantID: d.Client().TenantID, Token: d.Client().Token, ClientFlags: wire.Some(wire.FlagPublishAckCode),
		ClientFeatures: wire.Some(wire.FeatureErrorCodes | wire.FeatureConsumerGroup | wire.FeatureGroupClaimControl | wire.FeatureGroupDeadLetters | wire.FeatureGroupAdmin),
	}))
	if err != nil {
		d.t.Fatal(err)
	}
	if m, err := readMessage(s); err != nil || m.MessageType() != "auth_ok" {
		d.t.Fatalf("sign in: answered %v, %v", m, err)
	}
	return s
}
