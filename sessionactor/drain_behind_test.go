package sessionactor

import (
	"context"
	"strings"
	"testing"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// longHistory is a reader of a log without an end, far behind its tail.
type longHistory struct {
	storage.Cursor
	at id.Offset
}

func (*longHistory) Behind() bool { return true }

func (h *longHistory) Take(_ context.Context, _, _ int, dst []*batch.Batch) (storage.Page, error) {
	b := &batch.Batch{Base: h.at, Count: 1, Kind: batch.Records, Body: wire.AppendPayload(nil, []byte("old"))}
	h.at++
	return storage.Page{From: b.Base, Batches: append(dst[:0], b), Next: h.at}, nil
}

// A node that stops tells a reader of history where to go on instead of waiting for it; one in the tail gets what is queued for it, see
// TestADrainDeliversWhatOtherSessionsHadUnderWay.
func TestADrainDoesNotWaitForAReaderOfALongHistory(t *testing.T) {
	finish, drain := context.WithCancel(context.Background())
	defer drain()
	wrote := make(chan []byte)
	o := &Options{Clock: actors.RealClock(), Delivery: DefaultDelivery(), Metrics: NewMetrics(newRegistry())}
	grant := wire.Negotiate(wire.Offer{Flags: offsets, HasFlags: true, Features: wire.FeatureShardMoved}, DurableOffer())
	d := newFeed(o, finish, 7, recorder{newHalf(context.Background(), actors.RealClock(), 1<<20), wrote}, requested(4, true, grant))
	d.cursor = &longHistory{}
	over := make(chan error, 1)
	go func() { over <- d.deliver(context.Background()) }()
	_ = want(t, wrote, "the beginning of history")
	drain()
	last := ""
	for range 3 { // what was being written when the drain came, and the end
		if last = string(want(t, wrote, "the end")); strings.Contains(last, "shard_moved") {
			break
		}
	}
	if !strings.Contains(last, `"type":"shard_moved","subscription_id":7`) || !strings.Contains(last, `"resume_from":`) {
		t.Errorf("the reader was told %q", last)
	}
	if err := want(t, over, "the end of the loop"); err != nil {
		t.Error(err)
	}
}
