package wire

// RequestKind names every request a client can make, and the three things that are none.
type RequestKind uint8

const (
	// KindUnknown is a type this version has never heard of, or one that only a broker sends.
	KindUnknown RequestKind = iota
	// KindMalformed is a payload that does not decode.
	KindMalformed
	// KindUnknownFlags is a frame with unknown flag bits or a combination no client may send.
	KindUnknownFlags

	KindAuth              // auth
	KindPublish           // publish, publish_batch, or a binary publish without producer id
	KindPublishIdempotent // publish_idempotent, or a binary publish with producer id
	KindPublishIf         // publish_if
	KindProducerInit      // producer_init
	KindSubscribe         // subscribe
	KindOffsetForTime     // offset_for_time
	KindStreamRead        // stream_read
	KindCachePut          // cache_put
	KindCacheGet          // cache_get
	KindCacheDelete       // cache_delete
	KindCachePutIf        // cache_put_if
	KindCacheDeleteIf     // cache_delete_if
	KindCacheWatch        // cache_watch
	KindCounterAdd        // counter_add
	KindCounterGet        // counter_get
	KindCommit            // commit
	KindStateGet          // state_get
	KindGroupPoll         // group_poll
	KindGroupAck          // group_ack
	KindGroupNack         // group_nack
	KindGroupExtend       // group_extend
	KindGroupDeadLetter   // group_dead_letter
	KindGroupDeadLetters  // group_dead_letters
	KindGroupDiscard      // group_discard
	KindGroupRedrive      // group_redrive
	KindGroupSeek         // group_seek
	KindGroupDescribe     // group_describe
	KindGroupDelete       // group_delete
	KindTopology          // topology
	KindStreamShards      // stream_shards
	KindCacheShards       // cache_shards
	KindShardOwners       // shard_owners
	KindShardInspect      // shard_inspect
	KindSubscriptionsList // subscriptions_list
	KindExtension         // extension

	kindEnd // one past the last
)

// RequestKinds is how many kinds there are: every kind is below it. For tables indexed by kind.
const RequestKinds = int(kindEnd)

// requestRow ties a type on the wire to its kind. Every one of them decodes; served says whether a broker of this version
// takes it too, if it offers what the kind needs. The others are answered unsupported.
type requestRow struct {
	typ    string
	kind   RequestKind
	served bool
	needs  Features
}

// requestTable lists every type a client sends. A kind becomes served in the same change that makes a broker answer it.
var requestTable = [...]requestRow{
	{"auth", KindAuth, true, 0},
	{"publish", KindPublish, true, 0},
	{"publish_batch", KindPublish, true, 0},
	{"publish_idempotent", KindPublishIdempotent, true, FeatureIdempotentProducer},
	{"publish_if", KindPublishIf, true, FeaturePublishConditional},
	{"producer_init", KindProducerInit, true, FeatureIdempotentProducer},
	{"subscribe", KindSubscribe, true, 0},
	{"offset_for_time", KindOffsetForTime, true, FeatureRecordTimestamps},
	{"stream_read", KindStreamRead, true, FeatureStreamRead},
	{"cache_put", KindCachePut, true, 0},
	{"cache_get", KindCacheGet, true, 0},
	{"cache_delete", KindCacheDelete, true, 0},
	{"cache_put_if", KindCachePutIf, true, FeatureCacheConditional},
	{"cache_delete_if", KindCacheDeleteIf, true, FeatureCacheConditional},
	{"cache_watch", KindCacheWatch, true, FeatureCacheWatch},
	{"counter_add", KindCounterAdd, true, FeatureCounters},
	{"counter_get", KindCounterGet, true, FeatureCounters},
	{"commit", KindCommit, true, FeatureAtomicCommit},
	{"state_get", KindStateGet, true, FeatureAtomicCommit},
	{"group_poll", KindGroupPoll, true, FeatureConsumerGroup},
	{"group_ack", KindGroupAck, true, FeatureConsumerGroup},
	{"group_nack", KindGroupNack, true, FeatureConsumerGroup},
	{"group_extend", KindGroupExtend, true, FeatureGroupClaimControl},
	{"group_dead_letter", KindGroupDeadLetter, true, FeatureGroupClaimControl},
	{"group_dead_letters", KindGroupDeadLetters, true, FeatureGroupDeadLetters},
	{"group_discard", KindGroupDiscard, true, FeatureGroupDeadLetters},
	{"group_redrive", KindGroupRedrive, true, FeatureGroupDeadLetters},
	{"group_seek", KindGroupSeek, true, FeatureGroupAdmin},
	{"group_describe", KindGroupDescribe, true, FeatureGroupAdmin},
	{"group_delete", KindGroupDelete, true, FeatureGroupAdmin},
	{"topology", KindTopology, true, 0},
	{"stream_shards", KindStreamShards, true, 0},
	{"cache_shards", KindCacheShards, true, 0},
	{"shard_owners", KindShardOwners, true, 0},
	{"shard_inspect", KindShardInspect, false, 0},
	{"subscriptions_list", KindSubscriptionsList, false, 0},
	{"extension", KindExtension, false, 0},
}

// KindOfType returns the kind of a message type; KindUnknown for a type that no client sends.
func KindOfType(typ string) RequestKind {
	for i := range requestTable {
		if requestTable[i].typ == typ {
			return requestTable[i].kind
		}
	}
	return KindUnknown
}

// RequestKindOf returns the kind of a decoded message; KindUnknown for a message that only a broker sends.
func RequestKindOf(m Message) RequestKind { return KindOfType(m.MessageType()) }

// KindOfFlags returns the kind of a binary frame from a client. Flags that fail CheckClientToServer give
// KindUnknownFlags; so does 0, which is JSON and has its kind from its type.
func KindOfFlags(f Flags) RequestKind {
	switch {
	case f == 0 || f.CheckClientToServer() != nil:
		return KindUnknownFlags
	case f.Has(FlagPublishIdempotent):
		return KindPublishIdempotent
	default:
		return KindPublish
	}
}

// Served reports whether a broker of this version takes requests of the kind; whether this very broker does, see Offer.Serves. That
// it decodes them says nothing: every request of the protocol decodes.
func (k RequestKind) Served() bool {
	for i := range requestTable {
		if requestTable[i].kind == k {
			return requestTable[i].served
		}
	}
	return false
}

// Serves reports whether a broker with this offer takes requests of the kind: what its version serves and its offer names.
func (o Offer) Serves(k RequestKind) bool {
	for i := range requestTable {
		if requestTable[i].kind == k {
			return requestTable[i].served && o.Features.Has(requestTable[i].needs)
		}
	}
	return false
}

// String returns the type on the wire; for KindPublish that of the single publish.
func (k RequestKind) String() string {
	for i := range requestTable {
		if requestTable[i].kind == k {
			return requestTable[i].typ
		}
	}
	switch k {
	case KindMalformed:
		return "malformed"
	case KindUnknownFlags:
		return "unknown flags"
	}
	return "unknown"
}
