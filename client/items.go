package client

// ItemKind says what an Item tells.
type ItemKind uint8

const (
	// ItemEvent: an event.
	ItemEvent ItemKind = iota
	// ItemShardLost: the event stream of a shard broke, or its reader fell behind; the client is about to go on. Err says
	// why.
	ItemShardLost
	// ItemShardMoved: a shard goes to another broker, and the client follows. Err is the *ShardMovedError.
	ItemShardMoved
	// ItemShardRecovered: a shard is read again. With Exact nothing is missing and nothing comes twice; without it the shard
	// has no offsets, is read from its tail, and what was published since the loss is missing; or it was not found for a while, so
	// that it may have been deleted and made again, and what is read is another one of its name.
	ItemShardRecovered
	// ItemShardEnded: a shard is read no more. Err says why; it is nil when the broker ended it in order.
	ItemShardEnded
	// ItemSnapshot, of a cache watch: the current values of a shard come next, of which CacheItem.Count says how many. With
	// Resnapshot they replace what was known of the shard, since changes are missing: the broker no longer has them, or an
	// earlier snapshot broke off. Keys that are not among them when ItemSnapshotEnd comes are gone; the watch does not know
	// which those are.
	ItemSnapshot
	// ItemSnapshotEnd, of a cache watch: all values of the snapshot have come, and changes follow. Of a snapshot that is not
	// counted (by a broker that does not offer Retained) it comes with the next change.
	ItemSnapshotEnd
)

// String is the name of the kind.
func (k ItemKind) String() string {
	names := [...]string{"event", "shard_lost", "shard_moved", "shard_recovered", "shard_ended", "snapshot", "snapshot_end"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Item is what a merged subscription has to tell: an event, or news of a shard.
type Item struct {
	Kind  ItemKind
	Shard uint32
	Event Event // ItemEvent
	Err   error // see the kinds
	Exact bool  // ItemShardRecovered
}
