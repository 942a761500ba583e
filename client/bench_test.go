package client

import (
	"context"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

const (
	benchRecords = 64
	benchBytes   = 256
)

func benchClient(b *testing.B, broker *testbroker.Broker) *Client {
	b.Helper()
	c, err := Connect(context.Background(), optionsFor(broker))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	return c
}

// BenchmarkPublishAsync64x256 is a batch of 64 records of 256 bytes per operation, acknowledged, as many under way as the
// window and the byte budget allow. The broker and the client share the machine, and the broker only answers. What bounds
// it is the client's QUIC send path: one core, some 340 MB/s in bulk.
func BenchmarkPublishAsync64x256(b *testing.B) {
	broker := testbroker.New(b, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		p, ok := f.Publish()
		if ok {
			s.Ack(wire.PublishAck{RequestID: p.RequestID})
		}
		return ok
	}})
	c := benchClient(b, broker)
	payloads := make([][]byte, benchRecords)
	for i := range payloads {
		payloads[i] = make([]byte, benchBytes)
	}
	ctx := context.Background()
	b.SetBytes(benchRecords * benchBytes)
	b.ReportAllocs()
	b.ResetTimer()
	under := make(chan *PendingPublish, 1024)
	failed := make(chan error, 1)
	go func() {
		var first error
		for p := range under {
			if _, err := p.Wait(ctx); err != nil && first == nil {
				first = err
			}
		}
		failed <- first
	}()
	for range b.N {
		p, err := c.PublishBatchAsync(ctx, "ns", "s", payloads, WithAck(AckBatch))
		if err != nil {
			b.Fatal(err)
		}
		under <- p
	}
	close(under)
	if err := <-failed; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkEvents64x256 is a batch of 64 events of 256 bytes per operation, from the socket to the caller of Next. What
// bounds it is the QUIC receive path of one connection: one core, some 340 MB/s in bulk.
func BenchmarkEvents64x256(b *testing.B) {
	batch := wire.EventBatch{Count: benchRecords}
	for range benchRecords {
		batch.Region = wire.AppendPayload(batch.Region, make([]byte, benchBytes))
	}
	frame := wire.AppendEventBatch(nil, wire.FlagEventBatchShared, &batch)
	broker := testbroker.New(b, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, ok := f.Message().(*wire.Subscribe); !ok {
			return false
		}
		e := s.OpenEvents()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
		for e.Raw(frame) {
		}
		return true
	}})
	c := benchClient(b, broker)
	ctx := context.Background()
	s, err := c.Subscribe(ctx, "ns", "s", SubscribeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.SetBytes(benchRecords * benchBytes)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for range benchRecords {
			if _, err := s.Next(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}
