package hostile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/wire"
)

func timeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func clientEarliest() client.SubscribeOptions {
	return client.SubscribeOptions{From: client.Earliest()}
}

// field case PRO-06, natively: a batch of nothing is done before it begins. It is acknowledged, has no offset, reaches no reader,
// and what stands around it is read in order.
func TestPRO06_ABatchOfZeroRecordsBlocksNobody(t *testing.T) {
	aside(t)
	h := open(t, setup{})
	sub := must(h.connect(t).Subscribe(t.Context(), namespace, "other", client.SubscribeOptions{}))(t)
	l := h.from(t, 11).dial().open()
	emptyJSON := func(id int, ack string) []byte {
		return jsonFrame(fmt.Sprintf(`{"type":"publish_batch","tenant_id":"t1","namespace":"default","stream":"other","payloads":[],"ack":%q,"request_id":%d}`, ack, id))
	}
	for i := range uint64(20) {
		l.raw(batchTo("other", 3*i+1))
		l.raw(batchTo("other", 0)) // nothing, and no answer
		l.raw(batchTo("other", 3*i+2, fmt.Sprint(i)))
		l.raw(emptyJSON(int(3*i+3), "per_batch"))
		for want := 3*i + 1; want <= 3*i+2; want++ {
			if f := l.next(); f.ack.RequestID != want || f.ack.Refusal != nil || f.ack.HasOffset {
				t.Fatalf("request %d: %s", want, f)
			}
		}
		f := l.next()
		done, answered := f.message.(*wire.PublishOK)
		if !(answered && done.RequestID == 3*i+3) && f.ack.RequestID != 3*i+3 {
			t.Fatalf("an empty batch as JSON: %s", f)
		}
		ctx, cancel := timeout(patience)
		e := must(sub.Next(ctx))(t)
		cancel()
		if string(e.Payload) != fmt.Sprint(i) {
			t.Fatalf("read %q, want %d", e.Payload, i)
		}
	}
	if n := h.Metric("felix_published_records_total"); n != 20 {
		t.Errorf("%v records were counted, want 20", n)
	}
}
