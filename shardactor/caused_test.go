package shardactor

import (
	"testing"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// decision 24: of a turn that fails, the request that the shard was busy with is told from the others.
func TestTheRequestThatMakesAShardFailIsToldFromTheOthersOfItsTurn(t *testing.T) {
	w := newWorld(t, nil)
	w.desire(stream("s", 1, 1))
	h := w.shard(stream("s", 1, 1).Name, 0, nil)
	if err := w.sys.Faults().Pause(h.Ref.Path(), actors.FaultTimeMax); err != nil {
		t.Fatal(err)
	}
	r := newReplies()
	for token := range shardcore.Token(5) {
		m := &Publish{Batch: batch.Batch{Count: 1, Kind: batch.Records, Body: wire.AppendPayload(nil, []byte("x"))}}
		if token == 2 {
			m.Batch.Count = 0 // no session sends such a batch, and a log cannot hold it
		}
		m.To(r, token)
		if err := h.Ref.TrySend(m, Size(m)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.sys.Faults().Heal(h.Ref.Path()); err != nil {
		t.Fatal(err)
	}
	for token := range shardcore.Token(5) {
		a := r.wait(t, token)
		if a.Refusal == nil || a.Refusal.Code != wire.CodeUnacknowledged || a.Caused != (token == 2) {
			t.Errorf("request %d: %+v", token, a)
		}
	}
	if w.shard(stream("s", 1, 1).Name, 0, h) == nil {
		t.Error("the shard did not come back")
	}
}

// A failure that was injected from outside is nobody's fault.
func TestAnInjectedFailureIsNobodysFault(t *testing.T) {
	w := newWorld(t, nil)
	name := route.Name{Kind: route.Stream, Tenant: "t1", Namespace: "default", Name: "s"}
	w.desire(stream("s", 1, 1))
	h := w.shard(name, 0, nil)
	if err := w.sys.Faults().Pause(h.Ref.Path(), actors.FaultTimeMax); err != nil {
		t.Fatal(err)
	}
	r := newReplies()
	m := &Publish{Batch: batch.Batch{Count: 1, Kind: batch.Records, Body: wire.AppendPayload(nil, []byte("x"))}}
	m.To(r, 1)
	if err := h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
	if err := w.sys.Faults().Crash(h.Ref.Path()); err != nil {
		t.Fatal(err)
	}
	if a := r.wait(t, 1); a.Refusal == nil || a.Caused {
		t.Errorf("%+v", a)
	}
}
