package wire

import (
	"encoding/binary"
	"testing"
)

func TestARecordWithoutKeyGoesToShardZero(t *testing.T) {
	for _, r := range []Routing{RoutingModulo, RoutingJumpHash} {
		if got := r.Shard(nil, false, 64); got != 0 {
			t.Errorf("%v: no key gives shard %d", r, got)
		}
		if got := r.Shard([]byte{}, true, 64); got != 27 {
			t.Errorf("%v: the empty key gives shard %d, want 27: it is hashed", r, got)
		}
		for _, shards := range []uint32{0, 1} {
			if got := r.Shard([]byte("user-42"), true, shards); got != 0 {
				t.Errorf("%v: %d shards give shard %d", r, shards, got)
			}
		}
	}
}

func TestJumpHashMovesKeysOnlyToTheNewShard(t *testing.T) {
	var key [8]byte
	for i := range uint64(500) {
		binary.BigEndian.PutUint64(key[:], i)
		before := RoutingJumpHash.Shard(key[:], true, 1)
		for shards := uint32(2); shards < 40; shards++ {
			after := RoutingJumpHash.Shard(key[:], true, shards)
			if after != before && after != shards-1 {
				t.Fatalf("key %d moved from %d to %d when shard %d came", i, before, after, shards-1)
			}
			before = after
		}
	}
}

func TestBothRoutingsSpreadKeysEvenly(t *testing.T) {
	const keys, shards = 16000, 16
	for _, r := range []Routing{RoutingModulo, RoutingJumpHash} {
		var count [shards]int
		var key [8]byte
		for i := range uint64(keys) {
			binary.BigEndian.PutUint64(key[:], i)
			count[r.Shard(key[:], true, shards)]++
		}
		for shard, n := range count {
			if n < keys/shards*8/10 || n > keys/shards*12/10 {
				t.Errorf("%v: shard %d got %d of %d keys", r, shard, n, keys)
			}
		}
	}
}

func TestRoutingNamesGoThereAndBack(t *testing.T) {
	for _, r := range []Routing{RoutingModulo, RoutingJumpHash} {
		if got, ok := ParseRouting(r.String()); !ok || got != r {
			t.Errorf("%v comes back as %v", r, got)
		}
	}
	if _, ok := ParseRouting("round_robin"); ok {
		t.Error("an unknown routing parsed")
	}
}
