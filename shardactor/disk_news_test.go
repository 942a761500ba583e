package shardactor

import (
	"errors"
	"testing"
)

func TestHoweverMuchADiskTellsItsShardIsCalledOnceUntilItLooks(t *testing.T) {
	var n news
	rings := 0
	n.tell(func(x *told) { x.persisted(1) }) // before the shard listens
	n.begin(func() { rings++ })
	for seq := range uint64(1000) {
		n.tell(func(x *told) { x.persisted(seq + 2) })
	}
	if got := n.take(); rings != 1 || got.before != 1001 {
		t.Fatalf("%d calls, told %+v", rings, got)
	}
	n.tell(func(x *told) { x.persisted(1002) })
	if got := n.take(); rings != 2 || got.before != 1002 || got.failed != nil {
		t.Fatalf("%d calls, told %+v", rings, got)
	}
}

func TestNewsKeepTheOrderOfCompletionsAndTheLevelOfTheDisk(t *testing.T) {
	var n news
	n.begin(func() {})
	failure := errors.New("no space")
	n.tell(func(x *told) { x.persisted(3) })
	n.tell(func(x *told) { x.writeFailed(4, failure) })
	n.tell(func(x *told) { x.writeFailed(6, errors.New("void with the first")) })
	n.tell(func(x *told) { x.persisted(7) })
	n.tell(func(x *told) { x.stalled = true })
	n.tell(func(x *told) { x.unsealed = failure }) // takes nothing of an append's failure, nor gives it anything
	got := n.take()
	if got.before != 3 || got.failed == nil || got.failed.seq != 4 || got.failed.err != failure || got.after != 7 || !got.stalled {
		t.Fatalf("told %+v", got)
	}
	if got := n.take(); got.before != 0 || got.failed != nil || got.after != 0 || !got.stalled {
		t.Fatalf("told again %+v", got)
	}
}
