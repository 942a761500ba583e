package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// remake deletes the stream, makes it again, and publishes a record, which has the offset of the first one of the stream before.
func (s *site) remake(b *broker, w worker, payload string) {
	s.t.Helper()
	b.node.Apply(route.Desired{Version: 2})
	again := s.desired(3)
	again.Assignments[0].Incarnation, again.Assignments[0].Generation, again.Assignments[0].Logs = 2, 2, ""
	b.node.Apply(again)
	ctx, cancel := testkit.Within()
	defer cancel()
	for {
		_, err := w.Publish(ctx, namespace, jobs, []byte(payload))
		if err == nil {
			return
		}
		if !errors.Is(err, client.ErrNotFound) && !errors.Is(err, client.ErrUnavailable) {
			s.t.Fatal(err)
		}
	}
}

// A consumer that works on a record of a stream that was deleted, and is handed the one at its offset in the next stream, runs its handler for it.
func TestConsumerRunsItsHandlerForARecordThatTookThePlaceOfOneInHand(t *testing.T) {
	s := newSite(t, nil)
	b := s.start(vfs.NewMem())
	w := s.connect()
	w.publish("old")
	began, goOn := make(chan string, 8), make(chan struct{})
	ctx, cancel := testkit.Within()
	defer cancel()
	k := must(w.Consume(ctx, namespace, jobs, w.group, func(ctx context.Context, m client.Message) error {
		began <- string(m.Payload)
		if string(m.Payload) == "old" {
			<-goOn
		}
		return nil
	}, client.ConsumeOptions{Concurrency: 2}))(t)
	defer func() { _ = k.Stop(ctx) }()
	if got := <-began; got != "old" {
		t.Fatal(got)
	}
	received := k.Stats().Received
	s.remake(b, s.connect(), "new")
	for k.Stats().Received == received { // it was handed to us
		if ctx.Err() != nil {
			t.Fatal("the new record does not come")
		}
		<-time.After(time.Millisecond)
	}
	close(goOn)
	for {
		select {
		case got := <-began:
			if got == "new" {
				return
			}
		case <-time.After(time.Millisecond):
			if info := w.info(); info.Committed == id.Offset(1) && len(began) == 0 {
				t.Fatalf("the new record is finished, and no handler has seen it: %+v", info)
			}
		}
	}
}
