package shardactor

import (
	"testing"
	"time"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
)

// A group that found room on some shards of its stream only is described and removed like any other: who asks every shard hears of the others that
// it is not there.
func TestAGroupThatIsNotOnEveryShardCanBeRemovedWhereNoRoomIsLeft(t *testing.T) {
	d := keptWorld(t, vfs.NewMem(), keptKeys(1, 0))
	shards := shardsOf(t, d, 2, 1)
	there, absent := newWorker(t, shards[1], "workers", 1), newWorker(t, shards[0], "workers", 1)
	there.poll(1)
	a, _ := absent.ask(&groupcore.Poll{Conn: 1, Max: 1}).(groupcore.Answer)
	if a.Refusal == nil || a.Refusal.Code != wire.CodeLimitExceeded {
		t.Fatalf("a group too many: %+v", a)
	}
	for _, in := range []groupcore.Input{groupcore.Describe{}, groupcore.ListDead{Max: 10}, groupcore.Remove{}} {
		if a := absent.do(in); a.Refusal != nil || a.Info.Exists || a.Existed {
			t.Errorf("%T of a group that is not there: %+v %+v", in, a, a.Refusal)
		}
	}
	if a := absent.do(&groupcore.Ack{Offset: 0}); a.Refusal == nil || a.Refusal.Code != wire.CodeStaleClaim {
		t.Errorf("an ack: %+v", a.Refusal)
	}
	for _, in := range []groupcore.Input{ // each is answered, whatever it asks for
		groupcore.Nack{Conn: 1}, groupcore.Nack{Conn: 1, HasDelay: true}, groupcore.Extend{Conn: 1, Extend: time.Second}, groupcore.GiveUp{}, groupcore.GiveUp{Offset: 9},
		groupcore.Discard{}, groupcore.Redrive{}, &groupcore.Ack{Offset: 9},
	} {
		absent.do(in)
	}
	if a := there.do(groupcore.Remove{}); a.Refusal != nil || !a.Existed {
		t.Errorf("%+v", a)
	}
	d.await("there is room again", func() bool { return d.disks.kept.used() == 0 })
	if len(absent.poll(1)) != 1 {
		t.Error("no group is made")
	}
}
