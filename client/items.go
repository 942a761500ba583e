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
	// has no offsets, is read from its tail, and what was published since the loss is missing.
	ItemShardRecovered
	// ItemShardEnded: a shard is read no more. Err says why; it is nil when the broker ended it in order.
	ItemShardEnded
)

// String is the name of the kind.
func (k ItemKind) String() string {
	names := [...]string{"event", "shard_lost", "shard_moved", "shard_recovered", "shard_ended"}
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
