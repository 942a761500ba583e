package main

import (
	"io"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/wire"
)

// A broker that takes frames of up to 1 MiB reads one of them, and nothing of one of 2 MiB: its stream ends.
//
// mission 185, mission 325
func TestAFrameAboveItsSettingIsRefused(t *testing.T) {
	r := start(t, t.TempDir(), "--max-frame-bytes", "1048576")
	defer r.stop(t)
	conn := r.dial(t)
	publish := func(bytes int) (answered bool) {
		s := r.signIn(t, conn)
		p := &wire.Publish{
			Flags: wire.FlagPublishBatch | wire.FlagPublishAcked, RequestID: 1, Ack: wire.AckPerBatch, Count: 1,
			Tenant: []byte(devTenant), Namespace: []byte(devNamespace), Stream: []byte(devStreams[0]), Region: wire.AppendPayload(nil, make([]byte, bytes)),
		}
		_, _ = s.Write(wire.AppendPublish(nil, p)) // the broker may end it at any moment
		_, err := readFrame(s)
		return err == nil
	}
	if !publish(1<<20 - 4096) {
		t.Error("a frame below the bound was refused")
	}
	if publish(2 << 20) {
		t.Error("a frame of 2 MiB was taken")
	}
}

// signIn opens a stream of a connection.
func (r *running) signIn(t *testing.T, conn *quic.Conn) *quic.Stream {
	t.Helper()
	s, err := conn.OpenStreamSync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = s.SetDeadline(time.Now().Add(patience))
	if _, err := s.Write(wire.AppendJSONFrame(nil, &wire.Auth{TenantID: r.dev.TenantID, Token: r.dev.ClientToken})); err != nil {
		t.Fatal(err)
	}
	if body, err := readFrame(s); err != nil || string(body) != `{"type":"ok"}` {
		t.Fatalf("auth was answered %s, %v", body, err)
	}
	return s
}

func readFrame(s io.Reader) ([]byte, error) {
	head := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(s, head); err != nil {
		return nil, err
	}
	h, err := wire.ParseHeader(head, wire.MaxPayload)
	if err != nil {
		return nil, err
	}
	body := make([]byte, h.Length)
	_, err = io.ReadFull(s, body)
	return body, err
}
