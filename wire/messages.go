package wire

// The list of messages, by who sends them.

// newMessage returns an empty message of a type; nil for a type that nobody knows.
func newMessage(typ []byte) Message {
	if m := newRequest(typ); m != nil {
		return m
	}
	return newAnswer(typ)
}

// newRequest returns an empty message of a type that a client sends.
func newRequest(typ []byte) Message {
	switch string(typ) {
	case "auth":
		return &Auth{}
	case "extension":
		return &Extension{}
	case "publish":
		return &PublishMessage{}
	case "publish_batch":
		return &PublishBatchMessage{}
	case "publish_idempotent":
		return &PublishIdempotent{}
	case "publish_if":
		return &PublishIf{}
	case "producer_init":
		return &ProducerInit{}
	case "subscribe":
		return &Subscribe{}
	case "offset_for_time":
		return &OffsetForTime{}
	case "stream_read":
		return &StreamRead{}
	case "cache_put":
		return &CachePut{}
	case "cache_get":
		return &CacheGet{}
	case "cache_delete":
		return &CacheDelete{}
	case "cache_put_if":
		return &CachePutIf{}
	case "cache_delete_if":
		return &CacheDeleteIf{}
	case "cache_watch":
		return &CacheWatch{}
	case "counter_add":
		return &CounterAdd{}
	case "counter_get":
		return &CounterGet{}
	case "commit":
		return &Commit{}
	case "state_get":
		return &StateGet{}
	case "group_poll":
		return &GroupPoll{}
	case "group_ack":
		return &GroupAck{}
	case "group_nack":
		return &GroupNack{}
	case "group_extend":
		return &GroupExtend{}
	case "group_dead_letter":
		return &GroupDeadLetter{}
	case "group_dead_letters":
		return &GroupDeadLetters{}
	case "group_discard":
		return &GroupDiscard{}
	case "group_redrive":
		return &GroupRedrive{}
	case "group_seek":
		return &GroupSeek{}
	case "group_describe":
		return &GroupDescribe{}
	case "group_delete":
		return &GroupDelete{}
	case "topology":
		return &Topology{}
	case "stream_shards":
		return &StreamShards{}
	case "cache_shards":
		return &CacheShards{}
	case "shard_owners":
		return &ShardOwners{}
	case "shard_inspect":
		return &ShardInspect{}
	case "subscriptions_list":
		return &SubscriptionsList{}
	}
	return nil
}

// newAnswer returns an empty message of a type that a broker sends.
func newAnswer(typ []byte) Message {
	switch string(typ) {
	case "auth_ok":
		return &AuthOK{}
	case "ok":
		return &OK{}
	case "unsupported":
		return &Unsupported{}
	case "error":
		return &ErrorAnswer{}
	case "publish_ok":
		return &PublishOK{}
	case "publish_error":
		return &PublishError{}
	case "publish_refused":
		return &PublishRefused{}
	case "producer_init_ok":
		return &ProducerInitOK{}
	case "subscribed":
		return &Subscribed{}
	case "subscribe_cursor_error":
		return &SubscribeCursorError{}
	case "event_stream_hello":
		return &EventStreamHello{}
	case "event":
		return &EventMessage{}
	case "event_batch":
		return &EventBatchMessage{}
	case "shard_moved":
		return &ShardMoved{}
	case "subscription_lagged":
		return &SubscriptionLagged{}
	case "offset_value":
		return &OffsetValue{}
	case "stream_records":
		return &StreamRecords{}
	case "cache_ok":
		return &CacheOK{}
	case "cache_value":
		return &CacheValue{}
	case "cache_condition_result":
		return &CacheConditionResult{}
	case "cache_watch_started":
		return &CacheWatchStarted{}
	case "cache_event":
		return &CacheEvent{}
	case "cache_watch_lagged":
		return &CacheWatchLagged{}
	case "counter_value":
		return &CounterValue{}
	case "commit_ok":
		return &CommitOK{}
	case "state_value":
		return &StateValue{}
	case "group_records":
		return &GroupRecords{}
	case "group_dead_letter_list":
		return &GroupDeadLetterList{}
	case "group_extended":
		return &GroupExtended{}
	case "group_position":
		return &GroupPosition{}
	case "group_info":
		return &GroupInfo{}
	case "group_deleted":
		return &GroupDeleted{}
	case "not_leader":
		return &NotLeader{}
	case "topology_view":
		return &TopologyView{}
	case "stream_shards_view":
		return &StreamShardsView{}
	case "cache_shards_view":
		return &CacheShardsView{}
	case "shard_owners_view":
		return &ShardOwnersView{}
	case "shard_inspect_info":
		return &ShardInspectInfo{}
	case "subscriptions_list_info":
		return &SubscriptionsListInfo{}
	}
	return nil
}
