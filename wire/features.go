package wire

// Features is the first word of optional abilities that the two sides exchange in auth. A side uses only what the
// other has offered. (S): the client sends the request only if the broker offers the bit. (C): the broker sends the
// field or message only if the client offers it.
type Features uint32

const (
	// FeatureTopology (S): the broker answers topology.
	FeatureTopology Features = 1 << iota
	// FeatureRedirect (C): the client reads not_leader.
	FeatureRedirect
	// FeatureCacheDelete (S): cache_delete.
	FeatureCacheDelete
	// FeatureConsumerGroup (S): group_poll, group_ack, group_nack.
	FeatureConsumerGroup
	// FeatureGroupDeadLetters (S): group_dead_letters, group_discard, group_redrive.
	FeatureGroupDeadLetters
	// FeatureStreamShards (S): stream_shards.
	FeatureStreamShards
	// FeatureCacheWatch (S): cache_watch.
	FeatureCacheWatch
	// FeatureCacheWatchRetained (S): retained on cache_watch.
	FeatureCacheWatchRetained
	// FeatureCounters (S): counter_add, counter_get.
	FeatureCounters
	// FeatureIdempotentProducer (S, C): producer_init, publish_idempotent, idempotent frames; publish_refused.
	FeatureIdempotentProducer
	// FeatureCacheShards (S): cache_shards.
	FeatureCacheShards
	// FeatureErrorCodes (C): code, retry and detail on error and publish_error.
	FeatureErrorCodes
	// FeatureShardMoved (C): shard_moved at the end of an event stream.
	FeatureShardMoved
	// FeatureUnsupported (both): unknown requests are answered unsupported instead of ending the stream.
	FeatureUnsupported
	// FeatureSequenceReused (C): reason sequence_reused on publish_refused.
	FeatureSequenceReused
	// FeaturePublishPipeline (both): publish_window is granted and answers keep the order of the publishes.
	FeaturePublishPipeline
	// FeatureAtomicCommit (S): commit, state_get.
	FeatureAtomicCommit
	// FeatureStreamPublishWindow (S): publish_window counts per stream, not per connection.
	FeatureStreamPublishWindow
	// FeatureShardOwners (S): shard_owners.
	FeatureShardOwners
	// FeatureAckOnCommit (C asks): acks only after the write, with offsets.
	FeatureAckOnCommit
	// FeatureGroupConsumer (S): consumer and reclaim on group_poll.
	FeatureGroupConsumer
	// FeatureSubscriptionLagged (C): subscription_lagged at the end of an event stream.
	FeatureSubscriptionLagged
	// FeatureGroupSkipped (C): skipped_before on group records.
	FeatureGroupSkipped
	// FeatureGroupPublisher (C): publisher on group records.
	FeatureGroupPublisher
	// FeatureGroupAdmin (S): group_seek, group_describe, group_delete.
	FeatureGroupAdmin
	// FeatureCacheConditional (S, C): cache_put_if, cache_delete_if; version on cache_value.
	FeatureCacheConditional
	// FeatureRecordTimestamps (S, C): offset_for_time; timestamp_micros on group records.
	FeatureRecordTimestamps
	// FeatureGroupClaimControl (S): group_extend, group_dead_letter, delays and attempts on group_nack.
	FeatureGroupClaimControl
	// FeaturePublishConditional (S): publish_if, expected_offset on commit.
	FeaturePublishConditional
	// FeatureStreamRead (S): stream_read.
	FeatureStreamRead
	// FeatureSubscribeQueue (S): queue_capacity on subscribe.
	FeatureSubscribeQueue
	// FeatureExtended is no ability: it says that the second word is there and understood.
	FeatureExtended
)

const (
	// FeatureHiInspect, second word (S): shard_inspect, subscriptions_list.
	FeatureHiInspect uint32 = 1
	// FeatureHiExplicitShard, second word (S): a publish, a commit and a read of state may name their shard.
	FeatureHiExplicitShard uint32 = 8
	// KnownFeaturesHi is every bit of the second word that has a meaning here. Clients offer others too; those are
	// ignored, unlike unknown flags, because no frame looks different for them.
	KnownFeaturesHi = FeatureHiInspect | FeatureHiExplicitShard
)

// Has reports whether all of bits are set.
func (f Features) Has(bits Features) bool { return f&bits == bits }

// Offer is what one side said of itself in auth or auth_ok. The zero value offered nothing.
type Offer struct {
	HasFlags   bool     // flags were given at all: a client without them is answered ok instead of auth_ok
	Flags      Flags    // frame layouts it can read
	Features   Features // FeatureExtended is set only when the second word counts and is not 0
	FeaturesHi uint32   // second word
}

// Offer reads what the client offered. The second word counts only when the first has FeatureExtended.
func (a *Auth) Offer() Offer {
	o := Offer{HasFlags: a.ClientFlags.Set, Flags: a.ClientFlags.V, Features: a.ClientFeatures.V}
	return o.withHi(a.ClientFeaturesHi.V)
}

// Offer reads what the broker offered, by the same rules.
func (a *AuthOK) Offer() Offer {
	o := Offer{HasFlags: true, Flags: a.ServerFlags, Features: a.ServerFeatures.V}
	return o.withHi(a.ServerFeaturesHi.V)
}

// withHi adds the second word under its rules: the marker and the word are both there and the word is not 0, or
// neither counts.
func (o Offer) withHi(hi uint32) Offer {
	if o.Features.Has(FeatureExtended) && hi != 0 {
		o.FeaturesHi = hi
		return o
	}
	o.Features &^= FeatureExtended
	return o
}

// AuthOK returns the answer by which a broker that offers o tells a client that offered client what it serves. The
// second word is told only to a client that set the marker itself. The caller adds ports and publish window.
func (o Offer) AuthOK(client Auth) *AuthOK {
	answer := &AuthOK{ServerFlags: o.Flags}
	features := o.Features &^ FeatureExtended
	if o.FeaturesHi != 0 && client.ClientFeatures.V.Has(FeatureExtended) {
		features |= FeatureExtended
		answer.ServerFeaturesHi = Some(o.FeaturesHi)
	}
	if features != 0 {
		answer.ServerFeatures = Some(features)
	}
	return answer
}

// Grant is what may be used on frames sent to a peer: what it offered, what we know, and what that depends on.
// The zero value allows JSON of the first protocol version and nothing else.
type Grant struct {
	Flags      Flags
	Features   Features
	FeaturesHi uint32
}

// flagNeeds lists which bits a bit is useless without; any is enough where several are named. In dependency order.
// FlagPublishAckOffset is not listed: offered alone it still allows offset in publish_ok.
var flagNeeds = [...]struct{ bit, any Flags }{
	{FlagPublishAcked, FlagPublishBatch},
	{FlagPublishKeyed, FlagPublishBatch},
	{FlagPublishIdempotent, FlagPublishAcked},
	{FlagPublishAckOwner, FlagPublishAck},
	{FlagPublishAckCode, FlagPublishAck},
	{FlagPublishAckDetail, FlagPublishAckCode},
	{FlagEventOffsets, eventBases},
	{FlagEventSkipped, FlagEventOffsets},
	{FlagEventPublisher, eventBases},
	{FlagEventTimestamps, eventBases},
}

// featureNeeds lists which feature a feature is useless without.
var featureNeeds = [...]struct{ bit, needs Features }{
	{FeatureGroupDeadLetters, FeatureConsumerGroup},
	{FeatureGroupConsumer, FeatureConsumerGroup},
	{FeatureGroupSkipped, FeatureConsumerGroup},
	{FeatureGroupPublisher, FeatureConsumerGroup},
	{FeatureGroupClaimControl, FeatureConsumerGroup},
	{FeatureCacheWatchRetained, FeatureCacheWatch},
	{FeatureSequenceReused, FeatureIdempotentProducer},
	{FeatureStreamPublishWindow, FeaturePublishPipeline},
}

// Negotiate returns what both sides offered, without the bits whose preconditions are missing. A client that named no
// flags is granted none (mission 186).
func Negotiate(client Offer, server Offer) Grant {
	g := Grant{Flags: client.Flags & server.Flags & KnownFlags, Features: client.Features & server.Features}
	for _, rule := range flagNeeds {
		if g.Flags&rule.any == 0 {
			g.Flags &^= rule.bit
		}
	}
	for _, rule := range featureNeeds {
		if !g.Features.Has(rule.needs) {
			g.Features &^= rule.bit
		}
	}
	if !g.Flags.Has(FlagEventOffsets) {
		g.Features &^= FeatureSubscriptionLagged // its only content is an offset
	}
	if g.Features.Has(FeatureExtended) {
		g.FeaturesHi = client.FeaturesHi & server.FeaturesHi & KnownFeaturesHi
	}
	if g.FeaturesHi == 0 {
		g.Features &^= FeatureExtended
	}
	return g
}
